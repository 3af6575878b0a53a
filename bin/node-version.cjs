// Loaded before the programs, by any Node: so old that it could not read them, it still reads this.
'use strict';
var version = process.versions.node.split('.').map(Number);
if (version[0] < 22 || (version[0] === 22 && version[1] < 22)) {
  process.stderr.write(
    'chartpilot needs Node 22.22 or newer; ' +
      process.execPath +
      ' is ' +
      process.version +
      '.\n' +
      '  → Put a newer one into PATH, or install chartpilot with its optional dependencies: Node 24 is one of them.\n',
  );
  process.exit(1);
}
