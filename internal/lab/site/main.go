// Command site makes a static site from README.md and the pages in docs, with navigation, a search
// that needs no server, and a directory for each version:
//
//	scripts/site [-versions REV,REV] [-tree=false] OUT
//
// The site works from any web server, below any path, and from files. Guarantees: links between
// pages lead to pages of the same version, and links to other files of the tree to the repository;
// a link that leads to neither is an error. Pictures are copied. The page of the simulation is
// copied if scripts/try -o has built it into docs/try. Concurrency: none. Failure: an error names
// the page and the link; OUT may then be incomplete. Limits: of Mermaid's diagrams, sequences are
// drawn and graphs become lists; code has no colours. Refused alternative: a generator of
// sites with themes, because it would need a tool chain of its own to be read and kept.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	root := flag.String("root", ".", "directory of the repository")
	revisions := flag.String("versions", "", "tags or commits, separated by commas, newest first")
	tree := flag.Bool("tree", true, "also make a version of the present tree, called next")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: scripts/site [-versions REV,REV] [-tree=false] OUT")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	versions, err := versionsOf(*root, *revisions, *tree)
	if err == nil {
		err = write(flag.Arg(0), versions)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	for _, v := range versions {
		fmt.Println(filepath.Join(flag.Arg(0), v.name, "index.html"))
	}
}

// versionsOf returns the versions to make, the newest first.
func versionsOf(root, revisions string, tree bool) ([]version, error) {
	var all []version
	if tree {
		all = append(all, version{name: "next", files: os.DirFS(root), revision: "main"})
	}
	for name := range strings.SplitSeq(revisions, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		files, err := filesAt(root, name)
		if err != nil {
			return nil, err
		}
		all = append(all, version{name: directoryOf(name), files: files, revision: name})
	}
	if len(all) == 0 {
		return nil, errors.New("there is no version to make: with -tree=false, -versions names at least one")
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.name] {
			return nil, fmt.Errorf("two versions have the directory %q: name each once in -versions", v.name)
		}
		seen[v.name] = true
	}
	return all, nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// directoryOf returns the name of a version's directory, which is also a part of addresses.
func directoryOf(revision string) string { return notInNames.ReplaceAllString(revision, "-") }
