package main

import (
	"bytes"
	"flag"
	"io"
	"strings"
	"testing"
)

func TestWhatIsMistypedIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		"memebrs":      "mortise: there is no command memebrs; did you mean members?\nmortise help lists the commands\n",
		"doc":          "mortise: there is no command doc; did you mean doctor?\nmortise help lists the commands\n",
		"lock":         "mortise: there is no command lock\nmortise help lists the commands\n",
		"l":            "mortise: there is no command l\nmortise help lists the commands\n",
		"help x":       "mortise: there is no command x\nmortise help lists the commands\n",
		"ls -jion a:1": "mortise ls: there is no flag -jion; did you mean -join?\nmortise help ls lists the flags\n",
		"ls --secret":  "mortise ls: there is no flag -secret; did you mean -secret-file?\nmortise help ls lists the flags\n",
		"ls -zone z":   "mortise ls: there is no flag -zone\nmortise help ls lists the flags\n",
		"members -n x": "mortise members: invalid value \"x\" for flag -n: parse error\nmortise help members lists the " +
			"flags\n",
		"members -n": "mortise members: flag needs an argument: -n\nmortise help members lists the flags\n",
		"ls -o yaml": "mortise ls: invalid value \"yaml\" for flag -o: want table or json\nmortise help ls lists the " +
			"flags\n",
	} {
		var out, errs bytes.Buffer
		if code := Main(t.Context(), strings.Fields(line), &out, &errs); code != exitUsage || errs.String() != want ||
			out.Len() > 0 {
			t.Errorf("mortise %s ends with %d and says\n%s%swant\n%s", line, code, out.String(), errs.String(), want)
		}
	}
}

func TestHelpOfACommand(t *testing.T) {
	const want = `mortise top [flags] [PREFIX]
a live list of the keys with the most waiters, the longest holds or the most changes of holder

  mortise top -by held
  mortise top orders/ -count 1

flags of this command:
  -by `
	for _, args := range [][]string{{"top", "-h"}, {"help", "top"}, {"top", "--help"}} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), args, &out, &errs)
		_, shared, _ := strings.Cut(out.String(), "\nflags that describe the cluster")
		if code != exitOK || errs.Len() > 0 || !strings.HasPrefix(out.String(), want) ||
			!strings.Contains(shared, "  -join ") || strings.Contains(shared, "  -by ") {
			t.Errorf("mortise %q ends with %d and says\n%s%s", args, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"help"}, &out, &errs); code != exitOK ||
		!strings.Contains(out.String(), "  doctor  ") {
		t.Errorf("help ends with %d and says\n%s", code, out.String())
	}
}

func TestExamplesAreCommandLines(t *testing.T) {
	for _, cmd := range commands() {
		if cmd.examples == "" {
			t.Errorf("%s has no example", cmd.name)
		}
		for line := range strings.Lines(cmd.examples) {
			words := strings.Fields(line)
			if words[0] != cmd.name {
				t.Errorf("%s is no example of %s", line, cmd.name)
			}
			if _, _, err := parse(cmd, words[1:], io.Discard, io.Discard); err != nil && err != flag.ErrHelp {
				t.Errorf("mortise %s: %v", line, err)
			}
		}
	}
}
