package chain

// ForgetKeys has chains serve as in a program without keys, until the function that it
// returns is called.
func ForgetKeys() (restore func()) {
	valued.Store(false)
	return func() { valued.Store(true) }
}
