package main

import (
	"flag"
	"strings"

	"github.com/mortise-lock/mortise/internal/plain"
)

func noCommand(word string, names []string) error {
	text := "there is no command " + plain.Text(word)
	if near := nearest(word, names); near != "" {
		text += "; did you mean " + near + "?"
	}
	return usageError(text + "\nmortise help lists the commands")
}

func badFlag(command string, fs *flag.FlagSet, err error) error {
	text := err.Error()
	if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
		name = strings.TrimPrefix(name, "-")
		var names []string
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		text = "there is no flag -" + plain.Text(name)
		if near := nearest(name, names); near != "" {
			text += "; did you mean -" + near + "?"
		}
	}
	return usageError(text + "\nmortise help " + command + " lists the flags")
}

// nearest returns the name that a misspelt word most likely stands for, or "". The name begins with
// the word, or differs from the word in at most two letters and in less than half of its letters.
func nearest(word string, names []string) string {
	best, least := "", min(2, (len(word)-1)/2)
	for _, name := range names {
		if len(word) > 1 && strings.HasPrefix(name, word) {
			return name
		}
		if d := distance(word, name); d <= least && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}

func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
