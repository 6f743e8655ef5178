package barrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise"
)

// The kinds of a record.
const (
	kindLatch  = "latch"
	kindDouble = "double barrier"
	kindCyclic = "cyclic barrier"
)

// record is the data of a key. Only a conditional Put changes it. The zero record means no data.
type record struct {
	Kind  string   `json:"kind"`
	Size  int      `json:"size"`
	Names []string `json:"names,omitempty"` // of a latch: the participants that have counted down

	// Round is the present round of a double barrier, or the present generation of a cyclic barrier.
	// The first is a token of this key, so it is higher than every round of an earlier record.
	Round  uint64          `json:"round,omitempty"`
	Open   bool            `json:"open,omitempty"`   // of a double barrier: all participants have entered
	Passed uint64          `json:"passed,omitempty"` // of a cyclic barrier: the last generation that was complete
	Why    string          `json:"why,omitempty"`    // of a cyclic barrier: why the last broken generation broke
	In     []mortise.Token `json:"in,omitempty"`     // the holds of the participants that have entered or wait
}

func (r *record) encode() ([]byte, error) {
	if r.Kind == "" {
		return nil, nil
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // names keep their length
	err := to.Encode(r)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// place is the key of one synchroniser.
type place struct {
	node Node
	name string
	kind string
	size int
}

// view is the state of a key at one moment.
type view struct {
	record
	revision uint64                   // zero if there is no data
	holders  map[mortise.Token]string // the participant of each hold
}

func (p *place) view(ctx context.Context) (view, error) {
	info, err := p.node.Peek(ctx, p.name)
	if err != nil {
		return view{}, err
	}
	v := view{revision: info.Revision, holders: map[mortise.Token]string{}}
	for _, s := range info.Queue {
		if s.Token != 0 {
			v.holders[s.Token] = s.Value
		}
	}
	if info.Revision == 0 {
		return v, nil
	}
	if err := json.Unmarshal(info.Data, &v.record); err != nil {
		return v, fmt.Errorf("%w: the data of key %q is not that of a %s", ErrMismatch, p.name, p.kind)
	}
	if v.Kind != p.kind {
		return v, fmt.Errorf("%w: key %q is used by a %s, not by a %s", ErrMismatch, p.name, v.Kind, p.kind)
	}
	return v, nil
}

// begin makes the record that of a new synchroniser, in the given round.
func (v *view) begin(p *place, round mortise.Token) {
	v.record = record{Kind: p.kind, Size: p.size, Round: uint64(round)}
}

// alive returns the holds of v.In that still exist. A hold of the participant name does not count
// if it is older than the hold me: the process of that name has been started again.
func (v *view) alive(name string, me mortise.Token) []mortise.Token {
	return slices.DeleteFunc(slices.Clone(v.In), func(t mortise.Token) bool {
		holder, held := v.holders[t]
		return !held || holder == name && t < me
	})
}

// holds returns an error if the hold me has ended, or if the participant name has a later hold.
func (v *view) holds(p *place, name string, me mortise.Token) error {
	if _, held := v.holders[me]; !held {
		return fmt.Errorf("barrier: the hold of participant %q of %q: %w", name, p.name, mortise.ErrLost)
	}
	for token, holder := range v.holders {
		if holder == name && token > me {
			return fmt.Errorf("%w: participant %q of %s %q", ErrReplaced, name, p.kind, p.name)
		}
	}
	return nil
}

func (p *place) sized(v *view) error {
	if v.Size == p.size {
		return nil
	}
	return fmt.Errorf("%w: %s %q has %d participants, not %d", ErrMismatch, p.kind, p.name, v.Size, p.size)
}

// agree calls step with the present view until step leaves the record as it is. After each change
// it stores the record, unless the data has changed since the view.
func (p *place) agree(ctx context.Context, step func(v *view) (changed bool, err error)) error {
	for {
		v, err := p.view(ctx)
		if err != nil {
			return err
		}
		if changed, err := step(&v); err != nil || !changed {
			return err
		}
		data, err := v.encode()
		if err != nil {
			return err
		}
		if _, err = p.node.Put(ctx, p.name, data, v.revision); err != nil && !errors.Is(err, mortise.ErrConflict) {
			return err
		}
	}
}

// remove removes the data of the key.
func (p *place) remove(ctx context.Context) error {
	return p.agree(ctx, func(v *view) (bool, error) {
		v.record = record{}
		return v.revision != 0, nil
	})
}
