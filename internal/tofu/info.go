package tofu

import (
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Names of the labels that contain the lock info.
const (
	LabelID        = "tofu.id" // always set
	labelOperation = "tofu.operation"
	labelVersion   = "tofu.version"
	labelCreated   = "tofu.created"
	labelInfo      = "tofu.info"
	labelPath      = "tofu.path"
)

const (
	maxName = 64  // bytes of the name of a run
	maxID   = 128 // bytes of an ID
)

// Info is the lock info of a run, as in the protocol. Its fields have these names in JSON.
type Info struct {
	ID, Operation, Info, Who, Version string
	Created                           time.Time
	Path                              string
}

// name is the name of the run in the audit log.
func (i Info) name() string {
	return plain.Text(plain.Cut(i.Who, maxName))
}

// Shown returns the value and the labels of a hold. If they take too many bytes, it shortens the
// longest of the texts, except the ID.
func (i Info) Shown() (value string, labels map[string]string) {
	texts := map[string]string{labelOperation: i.Operation, labelVersion: i.Version, labelInfo: i.Info, labelPath: i.Path}
	if !i.Created.IsZero() {
		texts[labelCreated] = i.Created.Format(time.RFC3339Nano)
	}
	who := i.Who
	for {
		labels, longest := map[string]string{LabelID: i.ID}, ""
		for name, text := range texts {
			if text != "" {
				labels[name] = text
			}
			if len(text) > len(texts[longest]) || len(text) == len(texts[longest]) && name < longest {
				longest = name
			}
		}
		value = valueStart(texts[labelOperation]) + who
		if len(value) <= lockfsm.MaxValueBytes && len(shown.Encode(value, labels, nil)) <= lockfsm.MaxValueBytes {
			return value, labels
		}
		if len(who) > len(texts[longest]) {
			who = plain.Cut(who, len(who)/2)
		} else {
			texts[longest] = plain.Cut(texts[longest], len(texts[longest])/2)
		}
	}
}

func valueStart(operation string) string {
	if operation == "" {
		return ""
	}
	return operation + " by "
}

// HolderInfo returns the lock info of a hold. A hold that is not of OpenTofu has no ID.
func HolderInfo(held *mortise.HeldError) Info {
	l := held.Labels
	i := Info{ID: l[LabelID], Operation: l[labelOperation], Version: l[labelVersion], Info: l[labelInfo],
		Path: l[labelPath]}
	if i.ID == "" {
		return Info{Who: held.Holder, Created: held.Since,
			Info: fmt.Sprintf("a lock of mortise with token %d and value %q", held.Token, held.Value)}
	}
	i.Who = strings.TrimPrefix(held.Value, valueStart(i.Operation))
	i.Created, _ = time.Parse(time.RFC3339Nano, l[labelCreated])
	return i
}
