//go:build linux

package check

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	dockerfile = "cmd/mortise/Dockerfile"
	startsIn   = time.Minute // an agent alone starts within milliseconds
)

// instructions returns the lines of a Dockerfile without comments.
func instructions(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// The images are built with the version of Go that go.mod requires.
func TestImagesHaveTheVersionOfGo(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	if version == nil {
		t.Fatal("go.mod has no version of Go")
	}
	for name, text := range map[string]string{
		dockerfile: strings.Join(instructions(t, dockerfile), "\n"), "deploy/" + yml: read(t, yml),
	} {
		tag := `golang:` + regexp.QuoteMeta(version[1]) + `[.\d]*(-\w+)?`
		from := regexp.MustCompile(`(FROM ` + tag + `|# ` + tag + `\n *FROM golang)@sha256:[0-9a-f]{64} AS build\n`)
		if !from.MatchString(text) {
			t.Errorf("%s is not built with golang:%s", name, version[1])
		}
	}
}

// The program that the Dockerfile builds runs in an empty root, as the user of the image.
func TestTheImageRuns(t *testing.T) {
	lines := instructions(t, dockerfile)
	want := []string{"FROM", "WORKDIR", "COPY", "RUN", "FROM scratch", "COPY --from=build /mortise /mortise",
		"USER 65532", `ENTRYPOINT ["/mortise"]`}
	if len(lines) != len(want) || !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Fatalf("%s has the lines %q, want %q", dockerfile, lines, want)
	}
	build := strings.TrimPrefix(lines[3], "RUN ")
	dir := t.TempDir()
	if strings.Count(build, " -o /mortise ") != 1 {
		t.Fatalf("%q does not build /mortise", build)
	}
	program := filepath.Join(dir, "mortise")
	cmd := exec.Command("sh", "-ec", strings.Replace(build, " -o /mortise ", " -o "+program+" ", 1))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	static(t, program)
	if os.Getuid() != 0 {
		t.Skip("only root can run the program in an empty root")
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	inside := func(args ...string) *exec.Cmd {
		return &exec.Cmd{Path: "/mortise", Args: append([]string{"/mortise"}, args...), Dir: "/", Env: []string{},
			SysProcAttr: &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}}
	}
	for _, args := range [][]string{{"version"}, {"secret"}, {"help"}} {
		if out, err := inside(args...).CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("mortise %v: %v\n%s", args, err, out)
		}
	}
	serves(t, inside("agent", "-listen", "127.0.0.1:0", "-o", "json"))
}

func static(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic linker, which an empty image does not have", program)
		}
	}
}

// serves starts an agent, asks it, and stops it.
func serves(t *testing.T, agent *exec.Cmd) {
	t.Helper()
	var errs strings.Builder
	agent.Stderr = &errs
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(startsIn, func() { _ = agent.Process.Kill() })
	defer timer.Stop()
	var at struct{ Listen string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err == nil {
		var answer *http.Response
		if answer, err = http.Get("http://" + at.Listen + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("/readyz: %s", answer.Status)
			}
		}
	}
	if err != nil {
		t.Errorf("the agent does not serve within %v: %q, %v\n%s", startsIn, line, err, errs.String())
	}
	_ = agent.Process.Signal(syscall.SIGTERM)
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent ends with %v\n%s", err, errs.String())
	}
}
