package mortise

// Version is the release of this code. Between two releases it is that of the next one.
const Version = "v0.1.0"
