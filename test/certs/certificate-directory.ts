import { mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Content by file name. */
export type CertificateFiles = Readonly<Record<string, string>>;

/** Replaces files one by one with renames: readers never see a partial file, but may see files of two generations. */
export function replaceFiles(directory: string, files: CertificateFiles): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const next = join(directory, `.${name}.next`);
    mkdirSync(dirname(next), { recursive: true });
    writeFileSync(next, content, { mode: 0o600 });
    renameSync(next, join(directory, name));
  }
}

let generation = 0;

/**
 * Replaces all files atomically, like Kubernetes for a mounted Secret: fills a new directory, renames the symbolic link `..data` over the old one,
 * and removes the old directory. `directory/tls.crt` is a link to `..data/tls.crt` and never changes.
 */
export function swapMountedFiles(directory: string, files: CertificateFiles): void {
  mkdirSync(directory, { recursive: true });
  const previous = linkTarget(join(directory, '..data'));
  const current = `..${new Date().toISOString().replace(/[^0-9]/g, '_')}.${process.pid}.${++generation}`;
  mkdirSync(join(directory, current));
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(directory, current, name), content, { mode: 0o600 });
  }
  symlinkSync(current, join(directory, '..data_tmp'));
  renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
  for (const name of Object.keys(files)) {
    if (linkTarget(join(directory, name)) === undefined) symlinkSync(join('..data', name), join(directory, name));
  }
  if (previous !== undefined) rmSync(join(directory, previous), { recursive: true });
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
