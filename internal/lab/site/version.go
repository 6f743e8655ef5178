package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
)

// version is one state of the documents.
type version struct {
	name     string // of its directory, and in the selector
	files    fs.FS  // the tree of the repository
	revision string // in links to the repository
}

// filesAt returns the tree of a commit or tag.
func filesAt(root, revision string) (fs.FS, error) {
	// The name is an argument behind --, so it is never an option.
	check := exec.Command("git", "-C", root, "rev-parse", "--verify", "--quiet", "--end-of-options",
		revision+"^{commit}")
	commit, err := check.Output()
	if err != nil {
		return nil, fmt.Errorf("-versions: %q is neither a tag nor a commit of %s", revision, root)
	}
	archive := exec.Command("git", "-C", root, "archive", "--format=zip", strings.TrimSpace(string(commit)))
	var failure bytes.Buffer
	archive.Stderr = &failure
	data, err := archive.Output()
	if err != nil {
		return nil, fmt.Errorf("git archive %s: %w: %s", revision, err, failure.String())
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
}
