// Package native makes a Go runtime that runs a process as a function of one seed. The files that
// it changes exist only in an overlay for go build and go test. The tests of package whole use it.
//
// The changes: no system monitor and no preemption; the scheduler draws the next goroutine;
// random numbers come from the seed; and at a drawn part of the mutexes, channel operations and
// methods of package sync/atomic a goroutine lets others run. Places in the product that may refuse
// work ask the seed whether they refuse now, and logs have small segments (product.diff).
//
// Guarantees: with GOMAXPROCS=1 and the variables of Environ, two processes of one binary with
// equal seeds do the same in a bubble, byte for byte. Each change has an anchor, a few lines of the
// original. If an anchor does not occur exactly once, the error names the file and the Go version.
// Concurrency: plain functions. Failure: an error, and no files. Limits: linux and darwin, 64 bits;
// one processor, so there are no data races and no weak memory; a system call is real. Refused
// alternatives: GOOS=wasip1 under a host of its own replays too, but is 20 times slower and needs
// stubs of two modules; a fork of Go would have to be built and kept.
package native

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
)

// Go is the version of Go whose runtime the anchors fit.
const Go = "go1.26"

// Tag is the build tag of the code that calls the changed runtime.
const Tag = "wholenative"

// LinkFlags are for the flag -ldflags: the tests call functions of the runtime by linkname.
const LinkFlags = "-checklinkname=0"

// BuildEnviron returns the variables with which the tests are built.
func BuildEnviron() []string {
	return []string{"GOEXPERIMENT=norandomizedheapbase64"}
}

// Environ returns the variables of a process that replays. The garbage collector stays off, since
// its workers change the schedule, and so do the samples of the memory profile. Without ML-KEM a
// handshake costs less.
func Environ() []string {
	return []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=6GiB", "GODEBUG=asyncpreemptoff=1,memprofilerate=0,tlsmlkem=0"}
}

// Runtime returns the changed files of Go's standard library, by their paths below goroot. The
// version is that of [runtime.Version].
func Runtime(goroot, version string) (map[string]string, error) {
	if version != Go && !strings.HasPrefix(version, Go+".") {
		return nil, fmt.Errorf("the replay of whole nodes changes files of Go's runtime and is written for %s, not for "+
			"%s: use that version, or fit the anchors in internal/lab/whole/native/edits.go to this one and raise native.Go",
			Go, version)
	}
	files := map[string]string{}
	var wrong []error
	for _, e := range edits {
		path := filepath.Join(goroot, "src", filepath.FromSlash(e.file))
		text, read := files[path]
		if !read {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.at); n != 1 {
			wrong = append(wrong, fmt.Errorf("these lines occur %d times in %s of %s, and not once: fit the edit in "+
				"internal/lab/whole/native/edits.go:\n%s", n, e.file, version, e.at))
		}
		files[path] = strings.Replace(text, e.at, e.put, 1)
	}
	path := filepath.Join(goroot, "src", "sync", "atomic", "type.go")
	text, err := atomics(path, version)
	files[path] = text
	return files, errors.Join(append(wrong, err)...)
}

// method matches the head of each method that reads or writes.
var method = regexp.MustCompile(`(?m)^func \(x \*\w+(\[T\])?\) (Load|Store|Swap|CompareAndSwap|Add|And|Or)\(.*\{`)

// atomics lets the methods of package sync/atomic yield.
func atomics(path, version string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	const methods = 43 // of Bool, Pointer and five kinds of integers
	text := string(b)
	if n := len(method.FindAllString(text, -1)); n != methods {
		return "", fmt.Errorf("%s of %s has %d methods that read or write, and not %d: fit method in "+
			"internal/lab/whole/native/native.go", path, version, n, methods)
	}
	text = method.ReplaceAllStringFunc(text, func(head string) string { return head + " wholeYield(); " })
	return text + "\n// wholeYield may let another goroutine run.\n//\n//go:linkname wholeYield\nfunc wholeYield()\n", nil
}

// Root returns the root of the Go that builds.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// product has edits of the product: places that may refuse work refuse it at times, and the
// segments of a log are small, since a start reads whole ones.
//
// bugs.diff has planted bugs between the parts, which only runs of whole nodes can catch.
//
//go:embed product.diff bugs.diff
var product embed.FS

const refuses = `package %s

import _ "unsafe"

// refuses reports whether this kind of place refuses its work now, although it has room.
//
//go:linkname refuses runtime.wholeRefuse
func refuses(kind int) bool
`

func editsOf(name string) ([]mutants.Edit, error) {
	text, err := product.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return mutants.Parse(string(text))
}

func change(root string, files map[string]string, name string) error {
	all, err := editsOf(name)
	if err != nil {
		return err
	}
	return mutants.Apply(root, files, all)
}

// Overlay writes all changed files below dir, and returns the name of a file for the flag -overlay
// of go build and go test. The parameter root is the root of the module. With planted set, the
// product has all planted bugs, and PLANTED_BUG selects one.
func Overlay(root, goroot, dir string, planted bool) (string, error) {
	files := map[string]string{}
	if planted {
		var err error
		if files, err = mutants.Sources(root); err != nil {
			return "", err
		}
		if err := change(root, files, "bugs.diff"); err != nil {
			return "", err
		}
	}
	changed := map[string]string{}
	all, err := editsOf("product.diff")
	if err != nil {
		return "", err
	}
	for _, e := range all {
		if text, has := files[e.File]; has {
			changed[e.File] = text
		}
	}
	if err := mutants.Apply(root, changed, all); err != nil {
		return "", err
	}
	if err := mutants.Beside(changed, "whole_refuses.go", refuses); err != nil {
		return "", err
	}
	maps.Copy(files, changed)
	std, err := Runtime(goroot, runtime.Version())
	if err != nil {
		return "", err
	}
	maps.Copy(files, std)
	return mutants.Write(root, dir, files)
}

// BuildArgs returns the arguments of the go command that builds the tests of package whole.
func BuildArgs(overlay, binary string) []string {
	return []string{"test", "-c", "-tags", Tag, "-overlay", overlay, "-ldflags=" + LinkFlags, "-o", binary,
		"./internal/lab/whole"}
}
