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
// from comments, 60 from documents, and 40 errors and log messages.
//
//	MORTISE_SAMPLE=1 go test -v -run TestSample ./internal/policy     1 is the seed
func TestSample(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("MORTISE_SAMPLE"), 10, 64)
	if err != nil {
		t.Skip("MORTISE_SAMPLE is not set to a seed")
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, part := range []struct {
		of    string
		all   []string
		count int
	}{{"comments", commentSentences(t), 100}, {"documents", documentSentences(t), 60}, {"texts", listedTexts(t), 40}} {
		random.Shuffle(len(part.all), func(i, j int) { part.all[i], part.all[j] = part.all[j], part.all[i] })
		for i, s := range part.all[:part.count] {
			t.Logf("%s %d: %s", part.of, i+1, s)
		}
	}
}

func appendSentences(all []string, path, text string) []string {
	for _, s := range sentences(text) {
		if len(strings.Fields(s)) > 3 {
			all = append(all, path+": "+s)
		}
	}
	return all
}

func commentSentences(t *testing.T) (all []string) {
	set, files := sources(t)
	for _, s := range files {
		if s.generated {
			continue
		}
		comments, _ := proseOf(set, s.file)
		for _, p := range comments {
			all = appendSentences(all, s.path, p.text)
		}
	}
	return all
}

func documentSentences(t *testing.T) (all []string) {
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
		all = appendSentences(all, filepath.Base(path), fence.ReplaceAllString(string(text), ""))
	}
	return all
}

func listedTexts(t *testing.T) (texts []string) {
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
			texts = append(texts, pkg+": "+kind+": "+text)
		}
	}
	return texts
}
