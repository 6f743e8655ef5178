package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSample prints sentences for a reader who marks those that must be read twice: 100 of
// comments, 60 of documents, and 40 errors and log messages.
//
//	MORTISE_SAMPLE=1 go test -v -run TestSample ./internal/policy     1 is the seed
func TestSample(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("MORTISE_SAMPLE"), 10, 64)
	if err != nil {
		t.Skip("MORTISE_SAMPLE is not set to a seed")
	}
	random := rand.New(rand.NewPCG(seed, 0))
	comments, documents := allSentences(t)
	for _, part := range []struct {
		of    string
		all   []string
		count int
	}{{"comments", comments, 100}, {"documents", documents, 60}, {"texts", allTexts(t), 40}} {
		random.Shuffle(len(part.all), func(i, j int) { part.all[i], part.all[j] = part.all[j], part.all[i] })
		for i, s := range part.all[:part.count] {
			t.Logf("%s %d: %s", part.of, i+1, s)
		}
	}
}

// allSentences returns the sentences of all comments and documents, each with its file.
func allSentences(t *testing.T) (comments, documents []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git") {
			return errorOrSkip(err)
		}
		text, _ := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		add := func(all []string, text string) []string {
			for _, s := range sentences(text) {
				if len(strings.Fields(s)) > 3 {
					all = append(all, rel+": "+s)
				}
			}
			return all
		}
		switch filepath.Ext(path) {
		case ".md":
			documents = add(documents, fence.ReplaceAllString(string(text), ""))
		case ".go":
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil || ast.IsGenerated(file) {
				return err
			}
			found, _ := proseOf(set, file)
			for _, p := range found {
				comments = add(comments, p.text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return comments, documents
}

// allTexts returns the errors and log messages of the table of texts.
func allTexts(t *testing.T) (texts []string) {
	t.Helper()
	table, err := os.ReadFile("testdata/texts.md")
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

func errorOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}
