/** The certificate files of a random run. Contents have numbers; each change that brings new ones has a higher number. */

export type FilesState = 'fine' | 'half written' | 'missing';

export interface Reading {
  readonly digest: string;
  readonly files: string[];
  readonly problems: string[];
}

export class CertificateFiles {
  #state: FilesState = 'fine';
  #changes = 0;
  #newest = 1;
  #content = 1;
  /** What the agent last read that it could use. */
  #lastRead = 0;

  get state(): FilesState {
    return this.#state;
  }

  /** What is there, in numbers. */
  get content(): number {
    return this.#content;
  }

  /**
   * New contents, what was there when the agent read them last, or what Envoy cannot use.
   *
   * @param newestInUse the newest contents that an Envoy has started with. What was read does not come back while an Envoy
   * runs with what was there in between: the agent compares what it reads, and cannot know what Envoy has read.
   */
  change(to: FilesState | 'as before', newestInUse: number): void {
    const comesBack = to === 'as before' && this.#lastRead > 0 && newestInUse <= this.#lastRead;
    this.#state = to === 'as before' ? 'fine' : to;
    this.#changes++;
    this.#newest++;
    this.#content = comesBack ? this.#lastRead : this.#newest;
  }

  read(): Reading {
    const isMissing = this.#state === 'missing';
    return {
      digest: isMissing ? 'no files' : `files-${this.#content}`,
      files: isMissing ? [] : ['tls.crt'],
      problems: this.#state === 'half written' ? ['tls.crt: not a certificate'] : [],
    };
  }

  /**
   * Begins a reading, which takes time.
   *
   * @returns to be called at its end: whether what was read is surely news to the agent. Whether bad files are, is its own
   * matter; what changed meanwhile is read again.
   */
  beginReading(): () => boolean {
    const changes = this.#changes;
    return () => {
      const isNews = this.#state === 'fine' && changes === this.#changes && this.#content !== this.#lastRead;
      if (isNews) this.#lastRead = this.#content;
      return isNews;
    };
  }
}
