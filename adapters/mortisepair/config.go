package mortisepair

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/locker"
)

// mistakes are those of a configuration, so that an error can name all.
type mistakes []error

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (m *mistakes) need(field string, l locker.Locker) {
	if l == nil {
		m.add(field, "is missing")
	}
}

func (m mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	return fmt.Errorf("mortisepair: the configuration has %d mistake(s):\n%w", len(m), errors.Join(m...))
}

func unmade(kind string) error {
	return fmt.Errorf("mortisepair: this %s was not made by New%s", kind, kind)
}
