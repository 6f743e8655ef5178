package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// workflowFaults returns what makes a workflow depend on what others may change later, or gives a
// job more rights than it names.
func workflowFaults(text string) (faults []string) {
	pinned := regexp.MustCompile(`^(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$`)
	exact := regexp.MustCompile(`^version: v\d+\.\d+\.\d+$`)
	inJobs, job, permitted, after := false, "", true, ""
	end := func() {
		if job != "" && !permitted {
			faults = append(faults, "the job "+job+" names no permissions")
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		word := strings.TrimSpace(line)
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case strings.Contains(word, "uses:"):
			after = word
			if !pinned.MatchString(word) && !strings.Contains(word, "uses: ./") {
				faults = append(faults, "not the hash of a commit, with the version as a comment: "+word)
			}
		case strings.HasPrefix(word, "version:") && strings.Contains(after, "goreleaser") && !exact.MatchString(word):
			faults = append(faults, "not an exact version: "+word)
		case indent == 0 && word != "" && !strings.HasPrefix(word, "#"):
			inJobs = word == "jobs:"
		case inJobs && indent == 2 && strings.HasSuffix(word, ":"):
			end()
			job, permitted = strings.TrimSuffix(word, ":"), false
		case inJobs && indent == 4 && strings.HasPrefix(word, "permissions:"):
			permitted = !strings.Contains(word, "write-all")
		}
	}
	end()
	if !strings.Contains(text, "\npermissions: {}\n") {
		faults = append(faults, "jobs without permissions of their own would have some")
	}
	return faults
}

// imageFaults returns the images of a Dockerfile that may change later. An image is given by its
// digest, or is an earlier stage of the file.
func imageFaults(text string) (faults []string) {
	from := regexp.MustCompile(`(?m)^ *FROM (?:--\S+ )*(\S+)(?: (?i:AS) (\S+))?\r?$`)
	digest := regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	stages := map[string]bool{"scratch": true}
	for _, m := range from.FindAllStringSubmatch(text, -1) {
		if !stages[m[1]] && !digest.MatchString(m[1]) {
			faults = append(faults, "an image without a digest: "+m[1])
		}
		stages[m[2]] = true
	}
	return faults
}

func TestWorkflowsAndImagesArePinned(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	workflows, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil || len(workflows) < 2 {
		t.Fatal(workflows, err)
	}
	for _, path := range workflows {
		for _, fault := range workflowFaults(read(path)) {
			t.Errorf("%s: %s", path, fault)
		}
	}
	release := read(filepath.Join(root, ".github/workflows/release.yml"))
	for _, part := range []string{"attest-build-provenance@", "download-syft@", "sbom: true", "subject-checksums:",
		"subject-digest:", "go-version: stable"} {
		if !strings.Contains(release, part) {
			t.Errorf("release.yml has no %s", part)
		}
	}
	if !strings.Contains(read(filepath.Join(root, ".goreleaser.yaml")), "spdx-json=$document") {
		t.Error(".goreleaser.yaml makes no SBOM")
	}
	if !strings.Contains(read(filepath.Join(root, ".github/workflows/test.yml")), "scripts/fuzz 10m") {
		t.Error("no night runs the fuzz targets")
	}
	images := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if name := d.Name(); d.IsDir() || name != "Dockerfile" && !strings.HasPrefix(name, "compose") {
			return nil
		}
		text := read(path)
		images++
		for _, fault := range imageFaults(text) {
			t.Errorf("%s: %s", path, fault)
		}
		if regexp.MustCompile(`SECRET(=|:| |$)`).MatchString(text) {
			t.Errorf("%s has a secret in a variable", path)
		}
		return nil
	})
	if err != nil || images < 2 {
		t.Errorf("%d files with images: %v", images, err)
	}
}

func TestUnpinnedWorkflowsAreNoticed(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	good := "name: x\npermissions: {}\njobs:\n  test:\n    permissions: {contents: read}\n    steps:\n" +
		"      - uses: a/b@" + hash +
		" # v1.2.3\n  lint:\n    permissions:\n      contents: read\n    steps:\n      - uses: goreleaser/x@" + hash +
		" # v7\n        with:\n          version: v2.17.1\n"
	if faults := workflowFaults(good); len(faults) != 0 {
		t.Error(faults)
	}
	for old, bad := range map[string]string{
		"@" + hash + " # v1.2.3":                 "@v1",
		"a/b@" + hash + " # v1.2.3":              "a/b@" + hash,
		"a/b@0123456789":                         "a/b@",
		"permissions: {}\n":                      "permissions: {contents: write}\n",
		"    permissions: {contents: read}\n":    "",
		"    permissions:\n      contents: read": "    timeout-minutes: 3",
		"{contents: read}":                       "write-all",
		"version: v2.17.1":                       "version: '~> v2'",
	} {
		if text := strings.Replace(good, old, bad, 1); text == good || len(workflowFaults(text)) != 1 {
			t.Errorf("with %q for %q: %v", bad, old, workflowFaults(text))
		}
	}
	digest := "@sha256:" + strings.Repeat("a", 64)
	if faults := imageFaults("FROM x:1" + digest + " AS build\nFROM build AS two\nFROM scratch\n"); len(faults) != 0 {
		t.Error(faults)
	}
	for _, text := range []string{"FROM x:1\n", "FROM x:1 AS build\n", "  FROM --platform=a x@sha256:abc\n"} {
		if len(imageFaults(text)) != 1 {
			t.Errorf("%q is not noticed", text)
		}
	}
}

// TestMeshesAreNamed checks that each file that makes the network of the locks in Kubernetes, and
// the operator's page, say to exclude the port of the locks from a service mesh.
func TestMeshesAreNamed(t *testing.T) {
	files := []string{filepath.Join("docs", "OPERATION.md")}
	err := filepath.WalkDir(filepath.Join("..", "..", "..", "deploy"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "templates") || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(strings.ToLower(string(text)), "networkpolicy") {
			files = append(files, strings.TrimPrefix(path, filepath.Join("..", "..", "..")))
		}
		return err
	})
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	words := regexp.MustCompile(`[Ee]xclude (it|the\s+port) from a\s+service mesh`)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", file))
		if err != nil || !words.Match(text) {
			t.Errorf("%s does not say to exclude the port from a service mesh: %v", file, err)
		}
	}
}
