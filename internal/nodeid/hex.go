package nodeid

import (
	"fmt"
	"strconv"
)

// Hex returns the ID of a group or a replica as people see it everywhere: 16 hexadecimal digits.
// One that lost its leading zeros in one place would not be found by a search for what another
// place shows.
func Hex(id uint64) string { return fmt.Sprintf("%016x", id) }

// ParseHex reads such an ID, also one without its leading zeros.
func ParseHex(text string) (uint64, error) { return strconv.ParseUint(text, 16, 64) }
