package variables

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mortise-lock/mortise/internal/credentials"
)

const maxLinesBytes = 64 << 10

// Lines returns the lines of a file of secrets, without surrounding white space. In errors it
// names the variable with the given suffix. A file without lines is an error, because its content
// is probably not written yet. No error contains text of the file.
func (r *Reader) Lines(suffix, path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		r.Fault(suffix, "%v", err)
		return nil
	}
	if !info.Mode().IsRegular() { // reading another kind of file may never end
		r.Fault(suffix, "%s is not a regular file", path)
		return nil
	}
	r.loose(path, info)
	file, err := os.Open(path)
	if err != nil {
		r.Fault(suffix, "%v", err)
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxLinesBytes+1))
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	switch {
	case err != nil:
		r.Fault(suffix, "%v", err)
	case len(text) > maxLinesBytes:
		r.Fault(suffix, "%s has more than %d bytes", path, maxLinesBytes)
	case len(lines) == 0:
		r.Fault(suffix, "%s is empty", path)
	default:
		return lines
	}
	return nil
}

// loose adds a warning if other users may read or change a file of secrets.
func (r *Reader) loose(path string, info os.FileInfo) {
	if credentials.OpenToOthers(info) {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("the file %s may be read or changed by others (mode %#o): use chmod "+
				"600, or defaultMode: 0440 in Kubernetes", path, info.Mode().Perm()))
	}
}
