import { Argument, Command } from "@commander-js/extra-typings";
import { SCRIPTS } from "../../completion/scripts.ts";
import { examples } from "../../examples.ts";
import type { Session } from "../../session.ts";

export function command(session: Session) {
  return new Command("completion")
    .description("print a shell completion script")
    .addHelpText(
      "after",
      examples(
        "# in ~/.bashrc: source <(tradewind completion bash)",
        "tradewind completion bash > tradewind.bash",
        "# in ~/.zshrc, after compinit: source <(tradewind completion zsh)",
        "tradewind completion zsh > _tradewind",
        "tradewind completion fish > ~/.config/fish/completions/tradewind.fish",
      ),
    )
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"] as const))
    .action((shell) => session.terminal.raw(SCRIPTS[shell]));
}
