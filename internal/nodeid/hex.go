package nodeid

import (
	"fmt"
	"strconv"
)

// Hex returns the ID of a group or a replica as 16 hexadecimal digits. Leading zeros are kept, so
// that a text search finds the ID.
func Hex(id uint64) string { return fmt.Sprintf("%016x", id) }

// ParseHex parses the result of Hex, with or without its leading zeros.
func ParseHex(text string) (uint64, error) { return strconv.ParseUint(text, 16, 64) }
