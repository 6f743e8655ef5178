package lockfsm

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain adds the flag that rewrites the transcripts. A difference in a transcript is a change of
// the rules, so read it before you commit it.
func TestMain(m *testing.M) {
	flag.Bool("rewrite", false, "rewrite the expected parts of testdata")
	flag.Parse()
	os.Exit(m.Run())
}

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// TestTranscripts runs each testdata/*.txt on its own machine. A file has comments (#) and steps: a
// command, a line "----", and its output up to an empty line. testdata/README.md describes the
// commands.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			input, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			output := replay(t, string(input))
			if rewriting() {
				if err := os.WriteFile(file, []byte(output), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got, want, line := firstDifference(output, string(input)); line > 0 {
				t.Errorf("%s:%d\n got %q\nwant %q\nIf the new behaviour is right: go test -run Transcripts -rewrite",
					file, line, got, want)
			}
		})
	}
}

func replay(t *testing.T, input string) string {
	var out strings.Builder
	s := &script{names: map[string]SessionID{}}
	lines := strings.Split(input, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			continue
		}
		printed := s.run(strings.Fields(line))
		if s.m != nil {
			if err := s.m.Check(); err != nil {
				t.Errorf("after %q: %v", line, err)
			}
		}
		out.WriteString(line + "\n----\n" + printed + "\n")
		for i+1 < len(lines) && lines[i+1] != "" {
			i++
		}
		i++
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func firstDifference(got, want string) (string, string, int) {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x, y, i + 1
		}
	}
	return "", "", 0
}
