/**
 * The completion scripts that a shell loads. They contain no commands: each call runs `tradewind __complete`, so they work
 * with every version. Without candidates, the shell completes file names.
 */

/**
 * Bash splits words at `:` and `=`, which occur in run ids and `--option=value`. The line already contains the part before the
 * last separator, so it is removed from the candidates. `eval` is needed because a quoted word is not expanded as an alias.
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
