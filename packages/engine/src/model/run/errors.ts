/** Invalid input of the model: a manifest, an expression, a set of rows. Never transient. */
export class ModelError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = "ModelError";
    this.code = code;
  }
}
