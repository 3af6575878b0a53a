/**
 * Saves the last state of a source, so that a cold start without the server does not result in an empty mesh. Each kind has a file with a
 * `DiscoveryResponse`, whose nonce is a digest of the resources.
 */
import { createHash, hash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { KindName } from '../../../model/kinds/index.ts';
import { isSystemError } from '../../../runtime/errors.ts';
import { replaceFileSync } from '../../../runtime/files/replace-file.ts';
import { decodeResponse } from './source-messages.ts';
import type { StagedResource } from './source-objects.ts';

const resourceType = 'type.googleapis.com/istio.mcp.v1alpha1.Resource';

export class SavedState {
  readonly #directory: string;
  readonly #source: string;
  readonly #maxBytes: number;

  /** @param address distinguishes sources that use the same directory */
  constructor(directory: string, address: string, maxBytes: number) {
    this.#directory = directory;
    this.#source = hash('sha256', address, 'hex').slice(0, 16);
    this.#maxBytes = maxBytes;
  }

  write(kind: KindName, resources: readonly Uint8Array[]): void {
    const file = this.#fileOf(kind);
    if (resources.length === 0) {
      rmSync(file, { force: true });
      return;
    }
    const writer = new BinaryWriter();
    for (const resource of resources) {
      const resourceTypeWriter = new BinaryWriter().tag(1, WireType.LengthDelimited).string(resourceType);
      resourceTypeWriter.tag(2, WireType.LengthDelimited).bytes(resource);
      writer.tag(2, WireType.LengthDelimited).bytes(resourceTypeWriter.finish());
    }
    writer.tag(5, WireType.LengthDelimited).string(digestOf(resources));
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    replaceFileSync(file, writer.finish(), { flush: 'content' });
  }

  /**
   * @returns `undefined` if nothing was saved
   * @throws Error if the file cannot be used
   */
  read(kind: KindName, maxObjects: number): readonly StagedResource[] | undefined {
    const file = this.#fileOf(kind);
    try {
      const stats = statSync(file);
      if (!stats.isFile() || stats.size > this.#maxBytes)
        throw new Error(`must be a file of at most ${this.#maxBytes} bytes`);
      const { nonce, resources } = decodeResponse(readFileSync(file), 'sotw', 0);
      const stagedResources: StagedResource[] = [];
      for (const resource of resources)
        if (stagedResources.push(resource) > maxObjects) throw new Error(`has more than ${maxObjects} objects`);
      if (digestOf(stagedResources.map(({ bytes }) => bytes)) !== nonce)
        throw new Error('is incomplete or was changed');
      return stagedResources;
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  #fileOf(kind: KindName): string {
    return join(this.#directory, `${this.#source}-${kind}.pb`);
  }
}

function digestOf(resources: readonly Uint8Array[]): string {
  const digest = createHash('sha256');
  for (const resource of resources) digest.update(`${resource.length}:`).update(resource);
  return digest.digest('hex');
}
