/** The certificate files of a random run. Each change to new contents has a higher number. */

export type FilesState = 'fine' | 'half written' | 'missing';

export interface FilesReading {
  readonly digest: string;
  readonly files: string[];
  readonly problems: string[];
}

export class CertificateFiles {
  #state: FilesState = 'fine';
  #changes = 0;
  #newestVersion = 1;
  #content = 1;
  /** The last valid content that the agent has read. */
  #lastRead = 0;

  get state(): FilesState {
    return this.#state;
  }

  /** The current content, as a number. */
  get content(): number {
    return this.#content;
  }

  /**
   * Changes to new contents, the contents of the agent's last read, or contents that Envoy rejects.
   *
   * @param newestInUse the newest contents that an Envoy has started with. Earlier contents are not restored while an Envoy runs with contents in
   * between: the agent compares what it reads, and cannot know what Envoy has read.
   */
  change(to: FilesState | 'as before', newestInUse: number): void {
    const isRestored = to === 'as before' && this.#lastRead > 0 && newestInUse <= this.#lastRead;
    this.#state = to === 'as before' ? 'fine' : to;
    this.#changes++;
    this.#newestVersion++;
    this.#content = isRestored ? this.#lastRead : this.#newestVersion;
  }

  read(): FilesReading {
    const isMissing = this.#state === 'missing';
    return {
      digest: isMissing ? 'no files' : `files-${this.#content}`,
      files: isMissing ? [] : ['tls.crt'],
      problems: this.#state === 'half written' ? ['tls.crt: not a certificate'] : [],
    };
  }

  /**
   * Begins a read, which takes time.
   *
   * @returns a function to call when the read ends. It returns whether the result is certainly new to the agent. Invalid files may or may not be;
   * changes during the read are read again.
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
