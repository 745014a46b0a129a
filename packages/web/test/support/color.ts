/** Colour arithmetic for proofs about the tokens: OKLCH, sRGB, CIE Lab, ΔE2000, contrast, and colour-vision deficiencies. */

/** Linear-light sRGB, 0 to 1 each. */
export type Rgb = readonly [number, number, number];
type Triple = readonly [number, number, number];
type Matrix = readonly [Triple, Triple, Triple];

export type Vision = "normal" | "deutan" | "protan" | "tritan";

// Björn Ottosson, "A perceptual color space for image processing".
const OKLAB_TO_LMS: Matrix = [
  [1, 0.3963377774, 0.2158037573],
  [1, -0.1055613458, -0.0638541728],
  [1, -0.0894841775, -1.291485548],
];
const LMS_TO_RGB: Matrix = [
  [4.0767416621, -3.3077115913, 0.2309699292],
  [-1.2684380046, 2.6097574011, -0.3413193965],
  [-0.0041960863, -0.7034186147, 1.707614701],
];
const RGB_TO_XYZ: Matrix = [
  [0.4123907993, 0.3575843394, 0.1804807884],
  [0.2126390059, 0.7151686788, 0.0721923154],
  [0.0193308187, 0.1191947798, 0.9505321522],
];
const D65: Triple = [0.9504559271, 1, 1.0890577508];

// Machado, Oliveira and Fernandes 2009, severity 1.0, for linear-light sRGB.
const SIMULATIONS: Readonly<Record<Exclude<Vision, "normal">, Matrix>> = {
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const times = (matrix: Matrix, [x, y, z]: Triple): Triple =>
  matrix.map((row) => row[0] * x + row[1] * y + row[2] * z) as unknown as Triple;
const clamp = (value: number) => Math.min(1, Math.max(0, value));
const clampAll = (rgb: Triple): Rgb => rgb.map(clamp) as unknown as Rgb;

/** @param hue Degrees. Colours outside sRGB are clipped, as canvases and most screens do. */
export function fromOklch(lightness: number, chroma: number, hue: number): Rgb {
  const angle = (hue * Math.PI) / 180;
  return fromOklab([lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)]);
}

function fromOklab(lab: Triple): Rgb {
  const lms = times(OKLAB_TO_LMS, lab).map((value) => value ** 3) as unknown as Triple;
  return clampAll(times(LMS_TO_RGB, lms));
}

function inverse([[a, b, c], [d, e, f], [g, h, i]]: Matrix): Matrix {
  const det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
  return [
    [(e * i - f * h) / det, (c * h - b * i) / det, (b * f - c * e) / det],
    [(f * g - d * i) / det, (a * i - c * g) / det, (c * d - a * f) / det],
    [(d * h - e * g) / det, (b * g - a * h) / det, (a * e - b * d) / det],
  ];
}
const RGB_TO_LMS = inverse(LMS_TO_RGB);
const LMS_TO_OKLAB = inverse(OKLAB_TO_LMS);

/** color-mix(in oklab, …): `share` of the first one, 0 to 1. */
export function mixInOklab(first: Rgb, second: Rgb, share: number): Rgb {
  const [a, b] = [first, second].map((rgb) =>
    times(LMS_TO_OKLAB, times(RGB_TO_LMS, rgb).map(Math.cbrt) as unknown as Triple),
  ) as [Triple, Triple];
  return fromOklab(a.map((value, at) => value * share + b[at]! * (1 - share)) as unknown as Triple);
}

/** The colour as people with this vision see it. */
export function seenWith(vision: Vision, rgb: Rgb): Rgb {
  return vision === "normal" ? rgb : clampAll(times(SIMULATIONS[vision], rgb));
}

/** CIE Lab for the white point D65. */
export function toLab(rgb: Rgb): Triple {
  const f = (value: number) => (value > 216 / 24389 ? Math.cbrt(value) : ((24389 / 27) * value + 16) / 116);
  const [x, y, z] = times(RGB_TO_XYZ, rgb).map((value, at) => f(value / D65[at]!)) as unknown as Triple;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** ΔE2000 of two colours in CIE Lab. */
export function deltaE2000([l1, a1, b1]: Triple, [l2, a2, b2]: Triple): number {
  const rad = Math.PI / 180;
  const meanC = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const g = 0.5 * (1 - Math.sqrt(meanC ** 7 / (meanC ** 7 + 25 ** 7)));
  const [x1, x2] = [a1 * (1 + g), a2 * (1 + g)];
  const [c1, c2] = [Math.hypot(x1, b1), Math.hypot(x2, b2)];
  const hue = (x: number, y: number) => (x === 0 && y === 0 ? 0 : (Math.atan2(y, x) / rad + 360) % 360);
  const [h1, h2] = [hue(x1, b1), hue(x2, b2)];
  const isGrey = c1 * c2 === 0;
  let turn = isGrey ? 0 : h2 - h1;
  if (turn > 180) turn -= 360;
  else if (turn < -180) turn += 360;
  const dL = l2 - l1;
  const dC = c2 - c1;
  const dH = 2 * Math.sqrt(c1 * c2) * Math.sin((turn / 2) * rad);
  const meanL = (l1 + l2) / 2;
  const c = (c1 + c2) / 2;
  let h = h1 + h2;
  if (!isGrey) {
    if (Math.abs(h1 - h2) > 180) h += h < 360 ? 360 : -360;
    h /= 2;
  }
  const t =
    1 -
    0.17 * Math.cos((h - 30) * rad) +
    0.24 * Math.cos(2 * h * rad) +
    0.32 * Math.cos((3 * h + 6) * rad) -
    0.2 * Math.cos((4 * h - 63) * rad);
  const sL = 1 + (0.015 * (meanL - 50) ** 2) / Math.sqrt(20 + (meanL - 50) ** 2);
  const sC = 1 + 0.045 * c;
  const sH = 1 + 0.015 * c * t;
  const rotation =
    -2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) * Math.sin(60 * Math.exp(-(((h - 275) / 25) ** 2)) * rad);
  return Math.sqrt((dL / sL) ** 2 + (dC / sC) ** 2 + (dH / sH) ** 2 + rotation * (dC / sC) * (dH / sH));
}

/** The contrast of WCAG 2, from 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [one, other].map((rgb) => times(RGB_TO_XYZ, rgb)[1]).sort((a, b) => a - b) as [
    number,
    number,
  ];
  return (high + 0.05) / (low + 0.05);
}
