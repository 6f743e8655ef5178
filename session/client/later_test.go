package client

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestTheNextClient runs the test of the client with the next version of the rules.
func TestTheNextClient(t *testing.T) {
	slow.Nightly(t)
	if os.Getenv("PLANTED_BUG") != "" {
		t.Skip("only in a full run of the present build")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags=nextrules", "-short",
		"-run=ANewClientAtAnOldGroup", ".").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("%v\n%s", err, out)
	}
}
