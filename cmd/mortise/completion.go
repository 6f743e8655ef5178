package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

func completion(c *call, commands []command) error {
	shells := map[string]func([]completed) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	if len(c.words) != 1 || shells[c.words[0]] == nil {
		return usageError("completion takes one word: bash, zsh or fish")
	}
	var list []completed
	for _, cmd := range commands {
		one := completed{name: cmd.name, about: cmd.about}
		fs, _ := cmd.flagsOf(&call{errs: io.Discard, changed: map[string]string{}})
		fs.VisitAll(func(f *flag.Flag) {
			about, _, _ := strings.Cut(f.Usage, "; ")
			one.flags = append(one.flags, completed{name: "-" + f.Name, about: about})
		})
		list = append(list, one)
	}
	_, err := io.WriteString(c.out, shells[c.words[0]](list))
	return err
}

type completed struct {
	name, about string
	flags       []completed
}

func namesOf(list []completed) string {
	var names []string
	for _, one := range list {
		names = append(names, one.name)
	}
	return strings.Join(names, " ")
}

func single(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func bashCompletion(list []completed) string {
	var b strings.Builder
	b.WriteString("# mortise, for bash: source <(mortise completion bash)\n_mortise() {\n" +
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} flags=\n\tCOMPREPLY=()\n" +
		"\tif ((COMP_CWORD == 1)); then\n")
	fmt.Fprintf(&b, "\t\tCOMPREPLY=($(compgen -W %s -- \"$word\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n",
		single(namesOf(list)))
	for _, one := range list {
		fmt.Fprintf(&b, "\t%s) flags=%s ;;\n", one.name, single(namesOf(one.flags)))
	}
	b.WriteString("\tesac\n\tcase $word in\n\t-*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n" +
		"\tesac\n}\ncomplete -o default -F _mortise mortise\n")
	return b.String()
}

func zshCompletion(list []completed) string {
	var b strings.Builder
	b.WriteString("#compdef mortise\n# mortise, for zsh: source <(mortise completion zsh)\n" +
		"_mortise() {\n\tlocal -a list\n\tif ((CURRENT == 2)); then\n\t\tlist=(\n")
	for _, one := range list {
		fmt.Fprintf(&b, "\t\t\t%s\n", single(one.name+":"+one.about))
	}
	b.WriteString("\t\t)\n\t\t_describe command list\n\t\treturn\n\tfi\n" +
		"\tif [[ $PREFIX != -* ]]; then\n\t\t_files\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, one := range list {
		fmt.Fprintf(&b, "\t%s)\n\t\tlist=(\n", one.name)
		for _, f := range one.flags {
			fmt.Fprintf(&b, "\t\t\t%s\n", single(f.name+":"+f.about))
		}
		b.WriteString("\t\t) ;;\n")
	}
	b.WriteString("\tesac\n\t_describe flag list\n}\ncompdef _mortise mortise\n")
	return b.String()
}

func fishCompletion(list []completed) string {
	var b strings.Builder
	b.WriteString("# mortise, for fish: mortise completion fish | source\n")
	for _, one := range list {
		fmt.Fprintf(&b, "complete -c mortise -n __fish_use_subcommand -f -a %s -d %s\n", one.name, single(one.about))
		for _, f := range one.flags {
			fmt.Fprintf(&b, "complete -c mortise -n '__fish_seen_subcommand_from %s' -o %s -d %s\n", one.name,
				strings.TrimPrefix(f.name, "-"), single(f.about))
		}
	}
	return b.String()
}
