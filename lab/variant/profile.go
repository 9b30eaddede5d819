package variant

import "os"

// ProfileVariable names, in the environment of a program that was built to be
// profiled, the file for its CPU profile: ten seconds, from a second after the start
// on. The file appears under that name once it is whole.
const ProfileVariable = "TARE_PGO"

// profileSource is added to package main: it needs nothing but the standard library.
const profileSource = `package main

import (
	"os"
	"runtime/pprof"
	"time"
)

// Added by tare for one build, which takes the profile for another.
func init() {
	name := os.Getenv("` + ProfileVariable + `")
	if name == "" {
		return
	}
	go func() {
		time.Sleep(time.Second)
		f, err := os.Create(name + ".part")
		if err != nil {
			return
		}
		if pprof.StartCPUProfile(f) != nil {
			return
		}
		time.Sleep(10 * time.Second)
		pprof.StopCPUProfile()
		if f.Close() == nil {
			os.Rename(name+".part", name)
		}
	}()
}
`

// addProfile compiles with the profile, or so that the program takes one.
func (a *applier) addProfile() error {
	if a.Profile == "" {
		a.build.Flags = append(a.build.Flags, "-pgo=off")
		return a.addSource("tare_profile.go", profileSource)
	}
	if _, err := os.Stat(a.Profile); err != nil {
		return err
	}
	a.build.Flags = append(a.build.Flags, "-pgo="+a.Profile)
	return nil
}
