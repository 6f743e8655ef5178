package main

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// refusals are command lines that are refused, and what the refusal says. AT stands for an address
// at which no instance answers.
func refusals() map[string]string {
	return map[string]string{
		"agent x":                "agent takes no words, only flags: x",
		"ls a b":                 "too many words: a b",
		"get":                    "which key? mortise ls lists them",
		"get k":                  "where is the cluster? Name an instance with -join host:port, or set MORTISE_JOIN",
		"completion":             "completion takes one word: bash, zsh or fish",
		"completion tcsh":        "completion takes one word: bash, zsh or fish",
		"completion bash zsh":    "completion takes one word: bash, zsh or fish",
		"data":                   "say what to do: mortise data get KEY",
		"data get":               "say what to do: mortise data get KEY",
		"data look k":            "data takes get, put or rm, not look",
		"data get ''":            "the key is empty",
		"data get k x":           "too many words for data get",
		"data rm k x":            "too many words for data rm",
		"data put k x y":         "too many words for data put",
		"data put k ''":          "the data is empty: mortise data rm KEY deletes data",
		"data put k LONG":        "the data has more than 4096 bytes",
		"data get k -revision 1": "-revision belongs to data put and data rm",
		"dev x":                  "dev takes no words, only flags: x",
		"dev -try /nowhere":      "scripts/try -o /nowhere writes the files of the simulation",
		"dev -n 0":               "-n is 0: want 1, 3, 5, 7 or 9",
		"dev -n 11":              "-n is 11: want 1, 3, 5, 7 or 9",
		"dev -n 4":               "-n is 4: 3 of 4 must agree, so no more of them may fail than of 3; want 1, 3, 5, 7 or 9",
		"dev -n x":               "invalid value \"x\" for flag -n",
		"dev -join AT":           "there is no flag -join",
		"dev -listen unix:/x":    "-listen is a socket in the file system: a browser needs a loopback address with a port",
		"dev -listen :7948":      "-listen: \":7948\" is neither a loopback address with a port nor unix:/path",
		"doctor a b":             "too many words: a b",
		"memebrs": "there is no command memebrs; did you mean members?\n" +
			"mortise help lists the commands",
		"members -aftr x": "there is no flag -aftr; did you mean -after?\n" +
			"mortise help members lists the flags",
		"members -n -1":                 "-n must be at least 0",
		"members -after x":              "-after takes a SESSION of the list, a number",
		"sessions -n -1":                "-n must be at least 0",
		"sessions -after x":             "-after takes a SESSION of the list, a number",
		"sessions x":                    "sessions takes no words, only flags",
		"ping -n 0":                     "-n must be from 1 to ",
		"ping -n 1000000000":            "-n must be from 1 to ",
		"ping a b":                      "too many words: a b",
		"recover":                       "which group? mortise doctor shows it",
		"recover orders":                `"orders" is not a group ID; mortise doctor shows the ID`,
		"run k":                         "which command? mortise run KEY -- COMMAND...",
		"run -- true":                   "which key? mortise ls lists them",
		"run -n -w 1s k -- true":        "-n and -w exclude each other: set one",
		"run -w -1s k -- true":          "-w and -kill-after must not be negative",
		"run -kill-after -1s k -- true": "-w and -kill-after must not be negative",

		"run -max-idle 99ms k -- true":                  "-max-idle is 99ms; want 0 (no limit), or 100ms or more",
		"run -max-idle -1s k -- true":                   "-max-idle is -1s; want 0 (no limit), or 100ms or more",
		"run -lock-delay -1s k -- true":                 "-lock-delay is -1s; want 0 to 168h0m0s",
		"run -lock-delay 169h k -- true":                "-lock-delay is 169h0m0s; want 0 to 168h0m0s",
		"run -mode upgradable -lock-delay 1s k -- true": "-lock-delay of an upgradable request: an upgrade could wait",
		"run -mode upgradable -tree k -- true":          "-mode is upgradable, with -tree or -also: two upgrades",
		"run -mode upgradable -also j k -- true":        "-mode is upgradable, with -tree or -also: two upgrades",
		"run -mode 2_of_3 -tree k -- true":              "-mode is 2 of 3, with -tree or -also: a waiting request takes",
		"run -also j,mode=2_of_3 k -- true":             "is 2 of 3, with -tree or -also: a waiting request takes permits",
		"run -tree a//b -- true":                        `-tree of the key "a//b", which has an empty part`,

		"secret x":              "too many words: write each right in quotes after its own -allow",
		"secret -for x":         "-for and -until belong to a derived secret",
		"secret -until 1h":      "-for and -until belong to a derived secret",
		"secret -member":        "-for is missing: name the user of the derived secret",
		"secret -member -for x": "the root secret is missing: name its file by -secret-file, or set MORTISE_SECRET",
		"secret -member -for x -until soon": "-until soon is neither a time, like 2027-01-31T18:00:00Z, " +
			"nor a positive duration, like 720h",
		"secret -member -for x -until -1h":                  "is neither a time, like",
		"secret -member -for x -until 2020-01-31T18:00:00Z": "-until 2020-01-31T18:00:00Z has passed",
		"status -o yaml":              "want table or json\nmortise help status lists the flags",
		"top -by name":                "-by must be waiting, held or changes, -n at least 1, and -every at least 100ms",
		"top -n 0":                    "-by must be waiting, held or changes, -n at least 1, and -every at least 100ms",
		"top -every 99ms":             "-by must be waiting, held or changes, -n at least 1, and -every at least 100ms",
		"lead":                        "give the name of a voter, as mortise status shows it",
		"lead a b --reason y":         "give the name of a voter, as mortise status shows it",
		"lead a":                      "--reason is missing: give one for the audit log and the leader's log",
		"lead a --reason BELL":        "--reason contains control characters, or marks",
		"session ls":                  "give end and the ID of a session",
		"session end":                 "give end and the ID of a session",
		"session end x --reason y":    " is no ID of a session: mortise sessions shows them",
		"session end 0 --reason y":    " is no ID of a session: mortise sessions shows them",
		"session end 7":               "--reason is missing: give one for the audit log and the leader's log",
		"session end 7 --reason BELL": "--reason contains control characters, or marks",
		"unlock k":                    "--force is missing: this ends a hold of another process",
		"unlock --force":              "which key? mortise ls lists them",
		"unlock --force k": "--token is missing: mortise get k shows it; " +
			"it ensures that no later hold is ended",
		"unlock --force k --token 7 --all":         "--all ends every hold, and --token names one: give one of them",
		"unlock --force k --token 7":               "--reason is missing: give one for the audit log and the leader's log",
		"unlock --force k --all":                   "--reason is missing: give one for the audit log and the leader's log",
		"unlock --force k --token 7 --reason BELL": "--reason contains control characters, or marks",
		"unlock --force k --token x":               "invalid value",
		"watch a b":                                "too many words: a b",
		"audit x":                                  "audit takes no words",
		"doctor -watch -every 99ms -join AT":       "-every must be at least 100ms",
	}
}

// TestEveryRefusalOfACommandLine runs each refused command line. The refusal has the exit code of a
// wrong command line, prints nothing to standard output and says what is wrong. Each text of a
// refusal in the sources needs a command line.
func TestEveryRefusalOfACommandLine(t *testing.T) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, prefix+"_") {
			t.Setenv(name, "") // restored at the end
			_ = os.Unsetenv(name)
		}
	}
	var all strings.Builder
	for line, want := range refusals() {
		t.Setenv(prefix+"_JOIN", "") // a flag can make Main set this variable; Setenv restores it
		args := strings.Fields(line)
		for i, word := range args {
			switch word {
			case "''":
				args[i] = ""
			case "2_of_3", "j,mode=2_of_3":
				args[i] = strings.ReplaceAll(word, "_", " ")
			case "LONG":
				args[i] = strings.Repeat("x", 4097)
			case "BELL":
				args[i] = "a\a"
			case "AT":
				args[i] = "127.0.0.1:1"
			}
		}
		// An ended context keeps a command that should have been refused from waiting.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, errs bytes.Buffer
		code := Main(ctx, args, &out, &errs)
		if code != exitUsage || out.Len() > 0 || !strings.HasPrefix(errs.String(), "mortise") ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("mortise %s ends with %d and prints %q and %q, want %d and %q", line, code, out.String(),
				errs.String(), exitUsage, want)
		}
		all.WriteString(errs.String())
	}
	for text, at := range refusalTexts(t) {
		if !strings.Contains(all.String(), text) {
			t.Errorf("%s: no command line of this test is refused with %q", at, text)
		}
	}
}

// refusalTexts returns the longest fixed part of the text of each call of usageError, with its
// place.
func refusalTexts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	set := token.NewFileSet()
	verbs := regexp.MustCompile(`%[.\d]*\w`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if f, is := call.Fun.(*ast.Ident); !is || f.Name != "usageError" {
				return true
			}
			longest := ""
			ast.Inspect(call, func(n ast.Node) bool {
				if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					for _, part := range verbs.Split(text, -1) {
						if len(part) > len(longest) {
							longest = part
						}
					}
				}
				return true
			})
			if longest != "" { // else the text is that of another error
				texts[longest] = set.Position(call.Pos()).String()
			}
			return true
		})
	}
	if len(texts) < 25 {
		t.Errorf("found only %d texts: %v", len(texts), texts)
	}
	return texts
}
