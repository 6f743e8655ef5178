package policy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleasedGoldenLogsAreUnchanged compares the golden logs of the lock rules with those at the
// tags of all releases. Instances of two releases in one group rely on equal results for equal
// logs. Without tags, as in a shallow clone or before the first release, the test is skipped.
func TestReleasedGoldenLogsAreUnchanged(t *testing.T) {
	releases, faults := changedLogs(t, "../../..")
	for _, fault := range faults {
		t.Error(fault)
	}
	if releases == 0 {
		t.Skip("there is no tag of a release here, so no golden log was compared: fetch the tags (git fetch --tags)")
	}
}

const goldenDir = "lockfsm/testdata/golden"

// changedLogs lists the golden logs of released versions that were changed or removed since. It
// also returns the number of the releases.
func changedLogs(t *testing.T, root string) (releases int, faults []string) {
	t.Helper()
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).Output()
		return string(out), err
	}
	tags, err := git("tag", "--list", "v*")
	if err != nil {
		return 0, nil // not a clone
	}
	for tag := range strings.FieldsSeq(tags) {
		releases++
		files, err := git("ls-tree", "-r", "--name-only", tag, goldenDir+"/")
		if err != nil {
			t.Fatalf("%s: %v", tag, err)
		}
		for file := range strings.FieldsSeq(files) {
			if !strings.HasPrefix(filepath.Base(file), "rules") {
				continue // the log of the next version, which no release has
			}
			was, err := git("show", tag+":"+file)
			if err != nil {
				t.Fatalf("%s: %v", tag, err)
			}
			if is, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(is) != was {
				faults = append(faults, fmt.Sprintf("%s is not as in the release %s: restore it, and give the changed rules a "+
					"new version (lockfsm/rules.go)", file, tag))
			}
		}
	}
	return releases, faults
}

// TestChangedLogsAreFound makes a release in a repository of its own, and changes its logs.
func TestChangedLogsAreFound(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, goldenDir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", root, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Skipf("git: %v\n%s", err, out)
		}
	}
	want := func(what string, names ...string) {
		t.Helper()
		_, faults := changedLogs(t, root)
		if len(faults) != len(names) {
			t.Fatalf("%s: %q", what, faults)
		}
		for i, name := range names {
			if !strings.Contains(faults[i], name) || !strings.Contains(faults[i], "v0.1.0") {
				t.Errorf("%s: %q", what, faults)
			}
		}
	}
	want("no repository")
	git("init", "-q")
	write("rules1.log", "start\n")
	write("next2.log", "start\n")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	write("rules1.log", "changed before the release\n")
	want("no release")
	git("commit", "-q", "-a", "-m", "second")
	git("tag", "v0.1.0")
	want("nothing changed")
	write("next2.log", "changed\n")
	write("rules2.log", "new\n")
	want("what no release has")
	write("rules1.log", "changed\n")
	want("changed", "rules1.log")
	git("rm", "-q", "--cached", filepath.Join(goldenDir, "rules1.log"))
	if err := os.Remove(filepath.Join(root, goldenDir, "rules1.log")); err != nil {
		t.Fatal(err)
	}
	want("removed", "rules1.log")
}
