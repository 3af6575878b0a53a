/** Processor architectures of the image, by the names of Debian and of the OCI image specification. */

export interface Architecture {
  readonly name: 'amd64' | 'arm64';
  /** As Node and npm name it. */
  readonly node: 'x64' | 'arm64';
  /** As GNU tools and Debian's library folders name it. */
  readonly triplet: string;
}

export const architectures: readonly Architecture[] = [
  { name: 'amd64', node: 'x64', triplet: 'x86_64-linux-gnu' },
  { name: 'arm64', node: 'arm64', triplet: 'aarch64-linux-gnu' },
];
