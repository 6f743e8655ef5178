package mortise

import "encoding/json"

// What a holder shows to others travels as one value of the request. Without labels that is Request.Value as it is; else it begins with a mark, and what follows is JSON.
const labelMark = 0

type shown struct {
	Value  []byte            `json:"v,omitempty"`
	Labels map[string]string `json:"l,omitempty"`
	Mark   []byte            `json:"m,omitempty"` // of Hooks.Mark
}

// showing returns the bytes of value and labels.
func showing(value string, labels map[string]string) []byte {
	if len(labels) == 0 && (value == "" || value[0] != labelMark) {
		return []byte(value)
	}
	b, err := json.Marshal(shown{Value: []byte(value), Labels: labels})
	if err != nil { // strings always marshal
		return nil
	}
	return append([]byte{labelMark}, b...)
}

// showed takes them apart.
func showed(b []byte) (value string, labels map[string]string) {
	if len(b) == 0 || b[0] != labelMark {
		return string(b), nil
	}
	var s shown
	if json.Unmarshal(b[1:], &s) != nil {
		return string(b), nil
	}
	return string(s.Value), s.Labels
}
