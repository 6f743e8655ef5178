package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

//go:embed assets
var assets embed.FS

// marker is the file at the top of each site. It lists the versions with their pages.
const marker = "versions.js"

// write makes the site of the versions in a directory, which is empty, does not exist, or has an
// earlier site. The first version is the one that the top of the site leads to.
func write(dir string, versions []version) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	earlier := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == marker })
	if len(entries) > 0 && !earlier {
		return fmt.Errorf("%s is neither empty nor a site: name another directory", dir)
	}
	list := make([]listed, 0, len(versions))
	for _, v := range versions {
		out := output{dir: filepath.Join(dir, v.name)}
		if err := os.RemoveAll(out.dir); err != nil {
			return err
		}
		pages, err := out.version(v)
		if err != nil {
			return fmt.Errorf("version %s: %w", v.name, err)
		}
		list = append(list, listed{Name: v.name, Pages: pages})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	top := output{dir: dir}
	if err := top.file(marker, fmt.Appendf(nil, "window.siteVersions = %s;\n", text)); err != nil {
		return err
	}
	var front bytes.Buffer
	if err := layouts.ExecuteTemplate(&front, "top.html", versions[0].name); err != nil {
		return err
	}
	return top.file("index.html", front.Bytes())
}

// listed is a version in the selector.
type listed struct {
	Name  string   `json:"name"`
	Pages []string `json:"pages"`
}

var layouts = template.Must(template.New("").ParseFS(assets, "assets/*.html"))

// output writes into one directory.
type output struct{ dir string }

func (o output) file(name string, text []byte) error {
	at := filepath.Join(o.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, text, 0o644)
}

// version writes one version, and returns the names of its pages.
func (o output) version(v version) ([]string, error) {
	pages, err := pagesOf(v.files)
	if err != nil {
		return nil, err
	}
	l := &links{version: v, pages: pages, copied: map[string]string{}}
	done := make([]rendered, 0, len(pages))
	for _, p := range pages {
		r, err := render(p, l)
		if err != nil {
			return nil, err
		}
		done = append(done, r)
	}
	var names []string
	for _, r := range done {
		text, err := laidOut(v, done, r, l.tryIsBuilt())
		if err != nil {
			return nil, err
		}
		if err := o.file(r.file, text); err != nil {
			return nil, err
		}
		names = append(names, r.file)
	}
	index, err := indexOf(done)
	if err != nil {
		return nil, err
	}
	if err := o.file("index.js", index); err != nil {
		return nil, err
	}
	return names, o.others(l)
}

// others writes the style, the script, the pictures, and the page of the simulation.
func (o output) others(l *links) error {
	for _, name := range []string{"site.css", "site.js"} {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		if err := o.file(name, text); err != nil {
			return err
		}
	}
	copied := l.copied
	if l.tryIsBuilt() {
		files, err := fs.Glob(l.version.files, "docs/try/*")
		if err != nil {
			return err
		}
		for _, at := range files {
			copied[at] = "try/" + path.Base(at)
		}
	}
	for at, name := range copied {
		text, err := fs.ReadFile(l.version.files, at)
		if err != nil {
			return err
		}
		if err := o.file(name, text); err != nil {
			return err
		}
	}
	return nil
}

// laidOut returns a page with the navigation around it.
func laidOut(v version, all []rendered, r rendered, try bool) ([]byte, error) {
	type entry struct {
		File, Title string
		Here        bool
		Sections    []section
	}
	var entries []entry
	for _, p := range all {
		e := entry{File: p.file, Title: p.title, Here: p.file == r.file}
		if e.Here {
			for _, s := range p.sections {
				if s.level == 2 {
					e.Sections = append(e.Sections, s)
				}
			}
		}
		entries = append(entries, e)
	}
	var out bytes.Buffer
	err := layouts.ExecuteTemplate(&out, "page.html", map[string]any{
		"Title": r.title, "Body": r.body, "File": r.file, "Version": v.name, "Entries": entries, "Try": try,
		"Source": repository + "/blob/" + v.revision + "/" + r.source,
	})
	return out.Bytes(), err
}

// Anchor and Title are for the templates.
func (s section) Anchor() string { return s.anchor }

// Title returns the text of the heading.
func (s section) Title() string { return s.title }
