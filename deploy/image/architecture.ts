/** Processor architectures of the image, by their names in Debian and the OCI image specification. */

export interface Architecture {
  readonly name: 'amd64' | 'arm64';
  /** Name in Node and npm. */
  readonly node: 'x64' | 'arm64';
  /** Name in GNU tools and in Debian's library folders. */
  readonly triplet: string;
}

export const architectures: readonly Architecture[] = [
  { name: 'amd64', node: 'x64', triplet: 'x86_64-linux-gnu' },
  { name: 'arm64', node: 'arm64', triplet: 'aarch64-linux-gnu' },
];
