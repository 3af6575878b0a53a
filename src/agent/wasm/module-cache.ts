/**
 * Wasm modules on disk, bounded by size and age. A module has the name of its checksum, or, if no checksum is configured, of its URL. Modules
 * outlive the agent, so that a proxy that restarts does not depend on their server.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../runtime/files/make-folder.ts';

/** The limit of Istio's agent. */
export const maxModuleBytes = 256 * 1024 * 1024;
export const maxCacheBytes = 512 * 1024 * 1024;
/** Since a module was last used. */
export const maxUnusedMs = 24 * 60 * 60 * 1_000;
/** Envoy reads a file after it has received its name: until then it must stay. */
const minKeptMs = 60_000;
const magic = Buffer.from([0, 0x61, 0x73, 0x6d]);

export interface CacheLimits {
  readonly maxModuleBytes: number;
  readonly maxCacheBytes: number;
  readonly maxUnusedMs: number;
}

const defaultLimits: CacheLimits = { maxModuleBytes, maxCacheBytes, maxUnusedMs };

export interface ModuleKey {
  readonly url: string;
  /** Empty: any module. */
  readonly sha256: string;
}

export class ModuleCache {
  readonly #folder: string;
  readonly #limits: CacheLimits;
  readonly #now: () => number;
  /** Files whose checksum was verified by this program. */
  readonly #verified = new Set<string>();

  constructor(folder: string, limits: Partial<CacheLimits> = {}, now: () => number = Date.now) {
    this.#folder = folder;
    this.#limits = { ...defaultLimits, ...limits };
    this.#now = now;
  }

  /** Path of a cached module, which counts as used now; `undefined` if there is none, or its content is damaged. */
  async lookup(key: ModuleKey): Promise<string | undefined> {
    const file = this.#fileOf(key);
    try {
      const now = new Date(this.#now());
      await utimes(file, now, now);
      if (key.sha256 !== '' && !this.#verified.has(file) && (await hashOf(file)) !== key.sha256) {
        await rm(file, { force: true });
        return undefined;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    this.#verified.add(file);
    return file;
  }

  /**
   * Writes a module while it arrives and replaces the file atomically.
   *
   * @returns its path
   * @throws Error if it is too large, has another checksum, is not a Wasm module, or cannot be written
   */
  async store(key: ModuleKey, body: AsyncIterable<Uint8Array>): Promise<string> {
    makeFolder(this.#folder, 0o700);
    await this.#evict(0);
    const file = this.#fileOf(key);
    const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      const handle = await open(draft, 'wx', 0o600);
      let bytes: number;
      try {
        bytes = await this.#write(handle, key, body);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await this.#evict(bytes, draft);
      await rename(draft, file);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {});
      throw error;
    }
    this.#verified.add(file);
    return file;
  }

  async #write(handle: FileHandle, { sha256 }: ModuleKey, body: AsyncIterable<Uint8Array>): Promise<number> {
    const hash = createHash('sha256');
    let beginning = Buffer.alloc(0);
    let bytes = 0;
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > this.#limits.maxModuleBytes) {
        throw new Error(`module is larger than the limit of ${this.#limits.maxModuleBytes} bytes`);
      }
      if (beginning.length < magic.length) beginning = Buffer.concat([beginning, chunk]).subarray(0, magic.length);
      hash.update(chunk);
      await handle.writeFile(chunk);
    }
    const found = hash.digest('hex');
    if (sha256 !== '' && found !== sha256) throw new Error(`SHA-256 must be ${sha256}, got ${found}`);
    if (!beginning.equals(magic)) {
      throw new Error(
        `not a Wasm module: must begin with ${magic.toString('hex')}, got "${beginning.toString('hex')}"`,
      );
    }
    return bytes;
  }

  #fileOf({ url, sha256 }: ModuleKey): string {
    const name = sha256 === '' ? `url-${createHash('sha256').update(url).digest('hex')}` : sha256;
    return join(this.#folder, `${name}.wasm`);
  }

  /** Removes what is unused for too long, and then the least recently used files until there is space. */
  async #evict(neededBytes: number, kept?: string): Promise<void> {
    const now = this.#now();
    const names = await readdir(this.#folder);
    const found = await Promise.all(
      names.map(async (name) => {
        const file = join(this.#folder, name);
        const status = await stat(file).catch(() => undefined);
        return status?.isFile() && file !== kept ? [{ file, bytes: status.size, unusedMs: now - status.mtimeMs }] : [];
      }),
    );
    const files = found.flat().sort((a, b) => b.unusedMs - a.unusedMs);
    let total = files.reduce((sum, { bytes }) => sum + bytes, neededBytes);
    for (const { file, bytes, unusedMs } of files) {
      const isSurplus = total > this.#limits.maxCacheBytes && unusedMs >= minKeptMs;
      if (unusedMs < this.#limits.maxUnusedMs && !isSurplus) continue;
      await rm(file, { force: true });
      this.#verified.delete(file);
      total -= bytes;
    }
    if (total > this.#limits.maxCacheBytes) {
      throw new Error(`Wasm modules that are in use exceed the limit of ${this.#limits.maxCacheBytes} bytes`);
    }
  }
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
