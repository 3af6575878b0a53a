/**
 * The file name of a module is its checksum or, if none is configured, derived from the URL. Modules of images are stored under their checksum, with
 * a file for each image name that refers to it. Modules outlive the agent.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { replaceFile } from '../../runtime/files/replace-file.ts';

/** As in Istio's agent. */
export const maxModuleBytes = 256 * 1024 * 1024;
export const maxCacheBytes = 512 * 1024 * 1024;
/** Image names count too. */
export const maxCacheFiles = 4_096;
export const maxUnusedMs = 24 * 60 * 60 * 1_000;
/** Envoy reads a file after it received its name, so the file must exist until then. */
const minKeptMs = 60_000;
const wasmMagic = Buffer.from([0, 0x61, 0x73, 0x6d]);

export interface CacheLimits {
  readonly maxModuleBytes: number;
  readonly maxCacheBytes: number;
  readonly maxCacheFiles: number;
  readonly maxUnusedMs: number;
}

const defaultLimits: CacheLimits = { maxModuleBytes, maxCacheBytes, maxCacheFiles, maxUnusedMs };

export interface ModuleKey {
  readonly url: string;
  /** Empty for any module. */
  readonly sha256: string;
  /** Set if the module is fetched again for each version of the plugin. */
  readonly version?: string;
}

export interface StoredModule {
  readonly file: string;
  readonly sha256: string;
}

export class ChecksumError extends Error {}

export class ModuleError extends Error {}

export class ModuleCache {
  readonly #folder: string;
  readonly #limits: CacheLimits;
  readonly #now: () => number;
  readonly #verifiedFiles = new Set<string>();

  constructor(folder: string, limits: Partial<CacheLimits> = {}, now: () => number = Date.now) {
    this.#folder = folder;
    this.#limits = { ...defaultLimits, ...limits };
    this.#now = now;
  }

  /** Marks the module as used; `undefined` if it is missing or damaged. */
  async lookup(key: ModuleKey): Promise<string | undefined> {
    const file = this.#fileOf(key);
    try {
      await this.#use(file);
      if (key.sha256 !== '' && !this.#verifiedFiles.has(file) && (await hashOf(file)) !== key.sha256) {
        await rm(file, { force: true });
        return undefined;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    this.#verifiedFiles.add(file);
    return file;
  }

  async lookupImage(name: string): Promise<StoredModule | undefined> {
    const file = this.#imageFileOf(name);
    const sha256 = await readFile(file, 'latin1').catch(() => '');
    if (!/^[0-9a-f]{64}$/.test(sha256)) return undefined;
    await this.#use(file).catch(() => {});
    const module = await this.lookup({ url: '', sha256 });
    return module === undefined ? undefined : { file: module, sha256 };
  }

  async nameImage(name: string, { sha256 }: Pick<StoredModule, 'sha256'>): Promise<void> {
    await replaceFile(this.#imageFileOf(name), sha256, { draft: 'unique' });
  }

  async countModules(): Promise<number> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => name.endsWith('.wasm')).length;
  }

  async storeImage(body: AsyncIterable<Uint8Array>): Promise<StoredModule> {
    return this.#store(undefined, body);
  }

  /** @throws Error if the module is invalid or cannot be written */
  async store(key: ModuleKey, body: AsyncIterable<Uint8Array>): Promise<string> {
    return (await this.#store(key, body)).file;
  }

  async #store(key: ModuleKey | undefined, body: AsyncIterable<Uint8Array>): Promise<StoredModule> {
    ensureDirectory(this.#folder, 0o700);
    await this.#evict(0);
    const temporaryFile = join(this.#folder, `${randomBytes(12).toString('hex')}.tmp`);
    try {
      const handle = await open(temporaryFile, 'wx', 0o600);
      let writtenModule: { readonly bytes: number; readonly sha256: string };
      try {
        writtenModule = await this.#write(handle, key?.sha256 ?? '', body);
        await handle.sync();
      } finally {
        await handle.close();
      }
      const { bytes, sha256 } = writtenModule;
      await this.#evict(bytes, temporaryFile);
      const file = this.#fileOf(key ?? { url: '', sha256 });
      await rename(temporaryFile, file);
      this.#verifiedFiles.add(file);
      return { file, sha256 };
    } catch (error) {
      await rm(temporaryFile, { force: true }).catch(() => {});
      throw error;
    }
  }

  async #write(
    handle: FileHandle,
    sha256: string,
    body: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly bytes: number; readonly sha256: string }> {
    const hash = createHash('sha256');
    let firstBytes = Buffer.alloc(0);
    let bytes = 0;
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > this.#limits.maxModuleBytes) {
        throw new Error(`module is larger than the limit of ${this.#limits.maxModuleBytes} bytes`);
      }
      if (firstBytes.length < wasmMagic.length)
        firstBytes = Buffer.concat([firstBytes, chunk]).subarray(0, wasmMagic.length);
      hash.update(chunk);
      await handle.writeFile(chunk);
    }
    const actualSha256 = hash.digest('hex');
    if (sha256 !== '' && actualSha256 !== sha256)
      throw new ChecksumError(`SHA-256 must be ${sha256}, got ${actualSha256}`);
    if (!firstBytes.equals(wasmMagic)) {
      throw new ModuleError(
        `not a Wasm module: must begin with ${wasmMagic.toString('hex')}, got "${firstBytes.toString('hex')}"`,
      );
    }
    return { bytes, sha256: actualSha256 };
  }

  #fileOf({ url, sha256, version = '' }: ModuleKey): string {
    const cacheKey = version === '' ? url : `${url}\0${version}`;
    const name = sha256 === '' ? `url-${createHash('sha256').update(cacheKey).digest('hex')}` : sha256;
    return join(this.#folder, `${name}.wasm`);
  }

  #imageFileOf(name: string): string {
    return join(this.#folder, `${createHash('sha256').update(name).digest('hex')}.image`);
  }

  async #use(file: string): Promise<void> {
    const currentDate = new Date(this.#now());
    await utimes(file, currentDate, currentDate);
  }

  /** Removes modules that were unused for too long, then the least recently used ones. */
  async #evict(neededBytes: number, protectedFile?: string): Promise<void> {
    const nowMs = this.#now();
    const names = await readdir(this.#folder);
    const filesByDirectory = await Promise.all(
      names.map(async (name) => {
        const file = join(this.#folder, name);
        const status = await stat(file).catch(() => undefined);
        return status?.isFile() && file !== protectedFile
          ? [{ file, bytes: status.size, unusedMs: nowMs - status.mtimeMs }]
          : [];
      }),
    );
    const files = filesByDirectory.flat().sort((a, b) => b.unusedMs - a.unusedMs);
    let totalBytes = files.reduce((sum, { bytes }) => sum + bytes, neededBytes);
    let count = files.length;
    for (const { file, bytes, unusedMs } of files) {
      const exceedsLimits = totalBytes > this.#limits.maxCacheBytes || count >= this.#limits.maxCacheFiles;
      const isSurplus = exceedsLimits && unusedMs >= minKeptMs;
      if (unusedMs < this.#limits.maxUnusedMs && !isSurplus) continue;
      await rm(file, { force: true });
      this.#verifiedFiles.delete(file);
      totalBytes -= bytes;
      count--;
    }
    if (totalBytes > this.#limits.maxCacheBytes) {
      throw new Error(`Wasm modules that are in use exceed the limit of ${this.#limits.maxCacheBytes} bytes`);
    }
    if (count >= this.#limits.maxCacheFiles) {
      throw new Error(`Wasm modules that are in use exceed the limit of ${this.#limits.maxCacheFiles} files`);
    }
  }
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
