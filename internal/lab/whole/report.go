package whole

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// Report is what a run has left in the file MORTISE_REPORT: what it can go without, and its page.
type Report struct {
	Bugs  []string
	TTL   time.Duration
	Plan  string
	Parts []Part // that have happened, in their order
	Page  timeline.Page
}

// Part is something that a run can go without. With MORTISE_ONLY, a run has only the parts that
// this variable names, with commas between; a part of the kind Refusals is all refusals of a kind
// of place, and Refusal is one of them.
type Part struct {
	Kind PartKind
	N    int // counts the parts of a kind, or is the number of the place for Refusals
	Of   int // for Refusal: the place
	Text string
	At   time.Duration
}

// PartKind is what a part is.
type PartKind string

// These are the kinds of parts.
const (
	ACaller  PartKind = "caller"
	AFault   PartKind = "fault"
	ATrial   PartKind = "trial" // of the calm part of a run
	Loss     PartKind = "loss"
	Yields   PartKind = "yields"
	Refusals PartKind = "refusals"
	Refusal  PartKind = "refusal"
)

// nothing in MORTISE_ONLY is no part, so that a run can have none.
const nothing = "nothing"

// Name names the part in MORTISE_ONLY.
func (p Part) Name() string { return fmt.Sprintf("%s %d", p.Kind, p.N) }

// readReport reads the file of a report.
func readReport(name string) (*Report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no report: %w", name, err)
	}
	return &r, nil
}
