package policy

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSample prints sentences for a reader, who marks each sentence that must be read twice: 100
// from comments, 60 from documents, and 40 errors and log messages. Below a sentence it prints the
// paragraph or table row of the sentence and, for a comment, the line of code that it describes.
//
//	MORTISE_SAMPLE=1 go test -v -run TestSample ./internal/lab/policy     1 is the seed
func TestSample(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("MORTISE_SAMPLE"), 10, 64)
	if err != nil {
		t.Skip("MORTISE_SAMPLE is not set to a seed")
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, part := range []struct {
		of    string
		all   []sampled
		count int
	}{{"comments", commentSentences(t), 100}, {"documents", documentSentences(t), 60}, {"texts", listedTexts(t), 40}} {
		random.Shuffle(len(part.all), func(i, j int) { part.all[i], part.all[j] = part.all[j], part.all[i] })
		for i, s := range part.all[:part.count] {
			t.Logf("%s %d: %s: %s\n%s", part.of, i+1, s.path, s.text, s.around)
		}
	}
}

// sampled is a sentence of a file, with the text around it.
type sampled struct{ path, text, around string }

// appendSentences appends the sentences of a text that have more than three words. The line of code
// that the text describes may be empty.
func appendSentences(all []sampled, path, text, code string) []sampled {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		around := strings.Join(strings.Fields(paragraph+" "+code), " ")
		for _, s := range sentences(paragraph) {
			if len(strings.Fields(s)) > 3 {
				all = append(all, sampled{path, s, around})
			}
		}
	}
	return all
}

func commentSentences(t *testing.T) (all []sampled) {
	set, files := sources(t)
	for _, s := range files {
		if s.generated {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		comments, _ := proseOf(set, s.file)
		for _, p := range comments {
			all = appendSentences(all, s.path, p.text, codeOf(lines[p.line-1:]))
		}
	}
	return all
}

// codeOf returns the line of code that a comment describes. The comment begins in the first line.
func codeOf(lines []string) string {
	if code, _, _ := strings.Cut(lines[0], "//"); strings.TrimSpace(code) != "" {
		return "[" + code + "]"
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "//") {
			return "[" + line + "]"
		}
	}
	return ""
}

func documentSentences(t *testing.T) (all []sampled) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		prose := strings.ReplaceAll(fence.ReplaceAllString(string(text), ""), "|\n|", "|\n\n|")
		all = appendSentences(all, filepath.Base(path), prose, "")
	}
	return all
}

// listedTexts returns the errors and log messages in testdata/texts.md.
func listedTexts(t *testing.T) (texts []sampled) {
	t.Helper()
	table, err := os.ReadFile(filepath.Join("testdata", "texts.md"))
	if err != nil {
		t.Fatal(err)
	}
	pkg := ""
	for line := range strings.Lines(string(table)) {
		if name, is := strings.CutPrefix(line, "## "); is {
			pkg = strings.TrimSpace(name)
		}
		if kind, text, is := strings.Cut(strings.Trim(line, "| \n"), " | "); is && kind != "kind" && kind != "status" {
			texts = append(texts, sampled{pkg, kind + ": " + text, ""})
		}
	}
	return texts
}
