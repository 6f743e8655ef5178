package mortise

import "strconv"

// Token is a fencing token: of two grants of one key the later has the higher token. A resource that remembers the highest token it
// has seen and refuses lower ones is safe even against a holder that was stopped in the middle of its work. It marshals to JSON as a
// string, since it does not fit into the numbers of JavaScript.
type Token uint64

// MarshalJSON gives the decimal number as a JSON string.
func (t Token) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(t), 10)), nil
}

// UnmarshalJSON takes what MarshalJSON gives.
func (t *Token) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	*t = Token(n)
	return err
}
