package judge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/internal/history"
)

// ErrUnknown means that a history could not be judged, because it has holes or the search took too
// long.
var ErrUnknown = history.ErrUnknown

// Options are the options of Judge. The zero value is for a history of one machine.
type Options struct {
	history.Options

	// Timeout is the longest time for each search by Porcupine. Zero means 30 s.
	Timeout time.Duration

	// HTML is the path of a file to which Porcupine writes a picture of the first key with a
	// violation. Empty means that no picture is written.
	HTML string
}

// Judge runs both judges and returns their joined errors, or nil if the history is right. If the
// history has holes, it does not run the second judge, which would report missing events as
// violations.
func Judge(events []history.Event, o Options) error {
	first := Witness(events, o)
	if errors.Is(first, ErrUnknown) {
		return first
	}
	return errors.Join(first, Porcupine(events, o))
}

// Witness checks a history with the first judge, the witness check of internal/history.
func Witness(events []history.Event, o Options) error {
	return history.Judge(events, o.Options)
}

// Porcupine checks a history with the second judge, porcupine.
func Porcupine(events []history.Event, o Options) error {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.HTML != "" { // a relative path is meant now, and not after the searches
		path, err := filepath.Abs(o.HTML)
		if err != nil {
			return fmt.Errorf("judge: the picture: %w", err)
		}
		o.HTML = path
	}
	keys, err := operations(events, o)
	if err != nil {
		return err
	}
	var all []porcupine.Operation
	for _, k := range keys {
		all = append(all, k.operations...)
	}
	model := fencedLock(keys)
	result := porcupine.CheckOperationsTimeout(model, all, o.Timeout)
	if result == porcupine.Ok {
		return nil
	}
	for _, k := range keys { // find the key with the violation
		one := fencedLock([]*key{k})
		found, info := porcupine.CheckOperationsVerbose(one, k.operations, o.Timeout)
		if found == porcupine.Ok {
			continue
		}
		if o.HTML != "" {
			if err := porcupine.VisualizePath(one, info, o.HTML); err != nil {
				return fmt.Errorf("judge: the picture: %w", err)
			}
		}
		if found == porcupine.Illegal {
			return fmt.Errorf("porcupine: the history of %v is not that of a fenced lock: %s", k.part, explain(k, info))
		}
		return fmt.Errorf("%w: porcupine has searched the %d operations of %v for %v", ErrUnknown, len(k.operations),
			k.part, o.Timeout)
	}
	return fmt.Errorf("%w: porcupine has searched %d operations for %v", ErrUnknown, len(all), o.Timeout)
}

// Files reads the events of all given files. Each file may have the histories of one or several
// instances.
func Files(paths ...string) (events []history.Event, err error) {
	var given []os.FileInfo
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		before := len(events)
		if err == nil {
			events, err = history.Read(events, f)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if slices.ContainsFunc(given, func(o os.FileInfo) bool { return os.SameFile(o, info) }) {
			return nil, fmt.Errorf("%s: the file is given twice", path)
		}
		if len(events) == before {
			return nil, fmt.Errorf("%w: %s is empty", ErrUnknown, path)
		}
		given = append(given, info)
	}
	return events, nil
}

// explain describes the longest possible order of the operations of a key, and up to three
// operations that do not fit after it.
func explain(k *key, info porcupine.LinearizationInfo) string {
	var best []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(best) {
				best = order
			}
		}
	}
	text := fmt.Sprintf("%d of its %d operations fit into an order", len(best), len(k.operations))
	if len(best) > 0 {
		last := best[len(best)-1].Input.(operation)
		text += fmt.Sprintf(", the last is %v", last)
	}
	placed := map[operation]int{}
	for _, o := range best {
		placed[o.Input.(operation)]++
	}
	left := 0
	for _, o := range k.operations {
		if in := o.Input.(operation); placed[in] > 0 {
			placed[in]--
		} else if left < 3 {
			left++
			text += fmt.Sprintf("; after it %v does not fit, between %d and %d", in, o.Call, o.Return)
		}
	}
	return text
}
