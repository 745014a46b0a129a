/**
 * The scripts that a shell reads once. They hold no commands: each call asks `tradewind __complete`, so they fit every
 * version. Where it answers nothing, the shell completes names of files.
 */

/**
 * Bash breaks words at `:` and `=`, which ids of runs and `--option=value` have: what stands before the last of them is in
 * the line already and is taken off the candidates. A quoted word is not expanded as an alias: `eval` does that.
 */
const BASH = `_tradewind() {
  local line="\${COMP_LINE:0:COMP_POINT}" candidate
  local word="\${line##*[[:space:]]}"
  local typed="\${word%"\${word##*[:=]}"}"
  local call="\${BASH_ALIASES[\${COMP_WORDS[0]}]:-}"
  [[ -n $call ]] || printf -v call %q "\${COMP_WORDS[0]}"
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    COMPREPLY+=("\${candidate#"$typed"}")
  done < <(eval "$call"' __complete "$line"' 2>/dev/null)
}
complete -o default -F _tradewind tradewind
`;

const ZSH = `#compdef tradewind
_tradewind() {
  local -a candidates
  local value description
  while IFS=$'\\t' read -r value description; do
    candidates+=("\${value//:/\\\\:}\${description:+:$description}")
  done < <("\${words[1]}" __complete "\${(j: :)words[1,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then _describe tradewind candidates; else _files; fi
}
compdef _tradewind tradewind
`;

const FISH = `function __tradewind_complete
  set -g __tradewind_candidates (tradewind __complete (commandline -cp) 2>/dev/null)
  test (count $__tradewind_candidates) -gt 0
end
complete -c tradewind -f -n __tradewind_complete -a '(printf "%s\\n" $__tradewind_candidates)'
`;

export const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
