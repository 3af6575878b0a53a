//go:build wasip1

// go-templates renders injection templates of Go's text/template as WebAssembly. The host calls reserve, writes a request into the
// memory, calls render, and reads the response.
package main

import "unsafe"

// Kept from the garbage collector while the host writes or reads it.
var request, response []byte

//go:wasmexport reserve
func reserve(size uint32) uint32 {
	request = make([]byte, size)
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(request))))
}

// renderRequest renders the reserved request. It returns the address of the response in the upper 32 bits and its size in the lower.
//
//go:wasmexport render
func renderRequest() uint64 {
	response = Respond(request)
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(response))))<<32 | uint64(len(response))
}

func main() {}
