package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
)

// asJudge is a variable that makes this test binary act as the command.
const asJudge = "THIS_TEST_IS_MORTISE_JUDGE"

func TestMain(m *testing.M) {
	if os.Getenv(asJudge) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// written writes events to a file.
func written(t *testing.T, events []history.Event) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(history.Write(f, events), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestEachResult checks the exit code and the whole output for each way in which a judgement ends,
// and that each flag changes the judgement.
func TestEachResult(t *testing.T) {
	const storm = "../../testdata/storm.jsonl"
	right := historytest.Make(historytest.Options{Seed: 3, Calls: 200, Callers: 5, Keys: 3})
	text, err := os.ReadFile(storm)
	if err != nil {
		t.Fatal(err)
	}
	var holes []byte // without what node-1 has recorded
	skipped := false
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(`"k":"history"`)) {
			skipped = bytes.Contains(line, []byte(`"node-1"`))
		}
		if !skipped {
			holes = append(holes, line...)
		}
	}
	part := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(part, holes, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := func(name string) []history.Event {
		for _, p := range historytest.Plants() {
			for seed := uint64(0); p.Name == name && seed < 50; seed++ {
				if events := p.Break(historytest.Make(historytest.Options{Seed: seed, Calls: 200, Callers: 9, Keys: 4,
					Try: 0.2, Cancel: 0.2, Crash: 0.05, Lose: 0.05})); events != nil {
					return events
				}
			}
		}
		t.Fatalf("no history with %q", name)
		return nil
	}
	wrong := written(t, broken(historytest.Plants()[0].Name))
	picture := filepath.Join(t.TempDir(), "picture.html")
	const counts = `\d+ events over #: \d+ recorders, 3 keys, 200 calls, 0 locks lost\n`
	for _, row := range []struct {
		args []string
		code int
		out  string // a regular expression for all that is printed
	}{
		{nil, 2, `(?s)usage: mortise-judge \[flags\] FILE.*-uncertainty.*`},
		{[]string{"-x"}, 2, `(?s)flag provided but not defined: -x\nusage: .*`},
		{[]string{"no such file"}, 2, `mortise-judge: open no such file: .*\n`},
		{[]string{storm, storm}, 2, `mortise-judge: .*storm.jsonl: the file is given twice\n`},
		{[]string{written(t, right)}, 0, counts + `witness    right \(#\)\nporcupine  right \(#\)\n`},
		{[]string{"-settled", "-settle", "1ms", written(t, right)}, 0, `.*\nwitness    right .*\nporcupine  right .*\n`},
		{[]string{wrong}, 1, `(?s).*\nwitness    WRONG \(#\): .*`},
		{[]string{"-html", picture, wrong}, 1, `(?s).*\nporcupine  WRONG \(#\): .*`},
		{[]string{part}, 1, `(?s).*\nwitness    unknown \(#\): .*`},
		{[]string{"-timeout", "1ns", written(t, right)}, 1, `(?s).*right.*\nporcupine  unknown \(#\): .*`},
	} {
		command := exec.Command(os.Args[0], row.args...)
		command.Env = append(os.Environ(), asJudge+"=1")
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`[\d.]+(ms|µs|s)\b`).ReplaceAllString(string(out), "#")
		if code := command.ProcessState.ExitCode(); code != row.code ||
			!regexp.MustCompile(`^`+row.out+`$`).MatchString(text) {
			t.Errorf("%q: exit code %d, want %d; it prints\n%s\nwant %s", row.args, code, row.code, text, row.out)
		}
	}
	if text, err := os.ReadFile(picture); err != nil || !strings.Contains(string(text), "<html") {
		t.Errorf("the picture: %v", err)
	}
}

// TestSummary checks each number of the summary.
func TestSummary(t *testing.T) {
	if got, want := summary(nil), "0 events over 0s: 0 recorders, 0 keys, 0 calls, 0 locks lost"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	events := []history.Event{
		{Kind: history.Header, At: 5e9}, {Kind: history.Header, At: 4e9}, {Kind: history.Call, Key: "a", At: 6e9},
		{Kind: history.Call, Key: "b", At: 7e9}, {Kind: history.Call, Key: "a", At: 7e9},
		{Kind: history.Lost, Key: "a", At: 6e9},
	}
	if got, want := summary(events), "6 events over 3s: 2 recorders, 2 keys, 3 calls, 1 locks lost"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
