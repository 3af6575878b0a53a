// Loaded before the agent, of which there is one beside each workload. It is idle nearly all the time, and what V8 takes to be fast is
// most of what is its own: a function is compiled by an optimizing compiler when it has run ten times as often as V8 would wait by
// default. That keeps 5 MB of the compilers out of memory; what is really busy (DNS, metrics) is optimized all the same.
// The names are those of V8 13, that of the Node that comes along; another one would tell of names that it does not know.
'use strict';
if (/^13\./.test(process.versions.v8)) {
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev=4000');
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev-osr=1000');
  require('node:v8').setFlagsFromString('--invocation-count-for-turbofan=30000');
  require('node:v8').setFlagsFromString('--invocation-count-for-osr=5000');
}
