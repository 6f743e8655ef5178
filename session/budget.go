package session

import (
	"fmt"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Budgets are the budgets, in bytes, that a group is to adopt. Zero means no change.
type Budgets struct{ Session, Group uint64 }

// FormatBytes formats a number of bytes in the largest unit that needs no fraction.
func FormatBytes(n uint64) string {
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for ; n != 0 && n%1024 == 0 && unit < len(units)-1; unit++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[unit])
}

// NamesBudget reports whether a code means that a byte budget is exhausted. A reply with such a
// code contains the budget.
func NamesBudget(code lockfsm.Code) bool {
	return code == lockfsm.OverSessionBudget || code == lockfsm.OverGroupBudget
}

func (r *Reply) appendBudget(b []byte) []byte {
	if !NamesBudget(r.Code) {
		return b
	}
	return appendUvarints(b, r.Budget)
}

func (r *Reply) decodeBudget(f *fields) {
	if NamesBudget(r.Code) {
		r.Budget = f.uvarint()
	}
}
