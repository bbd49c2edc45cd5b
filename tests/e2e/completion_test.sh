#!/usr/bin/env bash
# completion_test.sh TIDEMARK: a tab in fish, and one in zsh on a real terminal (tmux); bash is in cli_test.sh.
. "$(dirname "$0")/stage.sh"
for program in fish zsh tmux; do
    if ! command -v "$program" >/dev/null; then
        echo "skipped: $program is not here"
        exit 77
    fi
done
mkdir -p "$dir/bin" "$dir/user"
ln -s "$tidemark" "$dir/bin/tidemark"
export PATH=$dir/bin:$PATH HOME=$dir/user TIDEMARK_HOME=$dir/home

# ---- fish
tidemark completion fish >"$dir/tidemark.fish"
fishes() { fish --no-config -c "source '$dir/tidemark.fish'; complete -C '$1'" | cut -f 1; }
fish_finds() { # TYPED WORD
    fishes "$1" | grep -qxF -- "$2" || fail "fish: $1 has no $2, but: $(fishes "$1")"
}
fish_finds 'tidemark mail se' search
fish_finds 'tidemark mail search has:' has:attachment
fish_finds 'tidemark config set reader.qui' reader.quiet
[ -z "$(fishes 'tidemark mail zz')" ] || fail "fish: what is none: $(fishes 'tidemark mail zz')"

# ---- zsh
mkdir "$dir/functions"
tidemark completion zsh >"$dir/functions/_tidemark"
cat >"$dir/user/.zshrc" <<ZSHRC
fpath=('$dir/functions' \$fpath)
autoload -Uz compinit && compinit -u -D
PROMPT='ready> '
ZSHRC
terminal=(tmux -S "$dir/tmux" -f /dev/null)
trap '"${terminal[@]}" kill-server 2>/dev/null; leave' EXIT
shown() { "${terminal[@]}" capture-pane -p; }
shows() { shown | grep -qF -- "$1"; }
"${terminal[@]}" new-session -d -x 120 -y 40 "ZDOTDIR='$dir/user' zsh -i"
until_true 60 shows 'ready>' || fail "zsh does not start: $(shown)"
zsh_finds() { # TYPED SHOWN
    "${terminal[@]}" send-keys C-u
    "${terminal[@]}" send-keys -l -- "$1"
    "${terminal[@]}" send-keys Tab
    until_true 60 shows "$2" || fail "zsh: $1 has no $2: $(shown)"
}
zsh_finds 'tidemark mail sear' 'tidemark mail search'
zsh_finds 'tidemark mail search has:att' has:attachment
zsh_finds 'tidemark config set reader.qui' reader.quiet
[ "$failed" -eq 0 ]
