package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// repository is the address of the files that are no pages.
const repository = "https://github.com/mortise-lock/mortise"

// page is one document, before it is rendered.
type page struct {
	source string // the path of its Markdown in the tree
	file   string // the name of its HTML in the directory of the version
	text   []byte
}

var pageLink = regexp.MustCompile(`\]\((docs/[A-Z]+\.md)`)

// pagesOf returns README.md and the pages in docs, in the order in which README.md first links to
// them. The pages that it does not link to follow by name.
func pagesOf(files fs.FS) ([]page, error) {
	readme, err := fs.ReadFile(files, "README.md")
	if err != nil {
		return nil, err
	}
	order := []string{"README.md"}
	add := func(at string) {
		if !slices.Contains(order, at) {
			order = append(order, at)
		}
	}
	found, err := fs.Glob(files, "docs/*.md")
	if err != nil {
		return nil, err
	}
	for _, match := range pageLink.FindAllSubmatch(readme, -1) {
		if slices.Contains(found, string(match[1])) {
			add(string(match[1]))
		}
	}
	for _, at := range found {
		add(at)
	}
	var pages []page
	for _, at := range order {
		text, err := fs.ReadFile(files, at)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page{source: at, file: htmlName(at), text: text})
	}
	return pages, nil
}

// htmlName returns the name of the HTML of a page.
func htmlName(source string) string {
	if source == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(path.Base(source), ".md") + ".html"
}

// links rewrites the links of one version, and notes which files of the tree it needs.
type links struct {
	version version
	pages   []page
	copied  map[string]string // by the path of a file in the tree: its name in the version
}

var outside = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*:|//)`)

// rewrite returns where a link of the page leads on the site. A picture is copied, and any other
// file is linked in the repository.
func (l *links) rewrite(from page, to string, picture bool) (string, error) {
	if outside.MatchString(to) || strings.HasPrefix(to, "#") {
		return to, nil
	}
	target, fragment, hasFragment := strings.Cut(to, "#")
	if hasFragment {
		fragment = "#" + fragment
	}
	at := path.Join(path.Dir(from.source), target)
	for _, p := range l.pages {
		if p.source == at {
			return p.file + fragment, nil
		}
	}
	if at == "docs" {
		return "index.html" + fragment, nil
	}
	info, err := fs.Stat(l.version.files, at)
	switch {
	case errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(at, ".."):
		return "", fmt.Errorf("%s links to %s, which is not there", from.source, to)
	case err != nil:
		return "", fmt.Errorf("%s links to %s: %w", from.source, to, err)
	case picture:
		name := "pictures/" + path.Base(at)
		for other, taken := range l.copied {
			if taken == name && other != at {
				return "", fmt.Errorf("%s and %s have one name: rename one of them", other, at)
			}
		}
		l.copied[at] = name
		return name, nil
	case at == tryPage && l.tryIsBuilt():
		return "try/index.html" + fragment, nil
	case info.IsDir():
		return repository + "/tree/" + l.version.revision + "/" + at + fragment, nil
	}
	return repository + "/blob/" + l.version.revision + "/" + at + fragment, nil
}

// tryPage is the page of the simulation in the browser. It works only beside its program.
const tryPage = "docs/try/index.html"

func (l *links) tryIsBuilt() bool {
	programs, err := fs.Glob(l.version.files, "docs/try/*.wasm*")
	return err == nil && len(programs) > 0
}
