package nodeid

import (
	"fmt"
	"strconv"
)

// Hex returns the ID of a group or a replica as it is shown everywhere: 16 hexadecimal digits.
// Leading zeros are kept, so that a text search finds the ID in all outputs.
func Hex(id uint64) string { return fmt.Sprintf("%016x", id) }

// ParseHex parses such an ID, also without its leading zeros.
func ParseHex(text string) (uint64, error) { return strconv.ParseUint(text, 16, 64) }
