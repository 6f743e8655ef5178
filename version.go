package mortise

// version is the release of this code. Between two releases it is that of the next one.
const version = "v0.1.0"

// Version returns the release of this code, as v1.2.3. Between two releases it is that of the next one. It
// is no constant, whose value would be a part of the API that may not change.
func Version() string { return version }
