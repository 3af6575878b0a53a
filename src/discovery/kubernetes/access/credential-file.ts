/** Files with credentials: their texts are secret, their names and sizes are not. */
import { fileErrorOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import { ApiError } from '../api-failure.ts';

const maxBytes = 1024 * 1024;

export function noCredentials(message: string): ApiError {
  return new ApiError({ kind: 'credentials', message });
}

/** @throws ApiError `credentials` */
export function readCredentialFile(path: string): string {
  let text: string;
  try {
    text = readBoundedText(path, maxBytes);
  } catch (error) {
    throw noCredentials(`${path}: ${fileErrorOf(error)}`);
  }
  if (text.trim() === '') throw noCredentials(`${path} is empty`);
  return text;
}

/** As client-go: tokens of service accounts are renewed in their files long before they end. */
const freshMs = 60_000;

/** A token that another program keeps new in a file. */
export class TokenFile {
  readonly #path: string;
  readonly #now: () => number;
  #last: { readonly token: string; readonly readAt: number } | undefined;

  constructor(path: string, now: () => number = () => performance.now()) {
    this.#path = path;
    this.#now = now;
  }

  /** @throws ApiError `credentials` when there is none and never was */
  token(): string {
    const now = this.#now();
    if (this.#last !== undefined && now - this.#last.readAt < freshMs) return this.#last.token;
    try {
      this.#last = { token: headerText(readCredentialFile(this.#path).trim(), this.#path), readAt: now };
    } catch (error) {
      // It may still be good; when it is not, the server says so.
      if (this.#last === undefined) throw error;
      this.#last = { token: this.#last.token, readAt: now };
    }
    return this.#last.token;
  }

  /** The next one is read again. */
  refused(): void {
    if (this.#last !== undefined) this.#last = { token: this.#last.token, readAt: Number.NEGATIVE_INFINITY };
  }
}

/** What cannot stand in a header would be a request that throws. @throws ApiError `credentials` */
export function headerText(value: string, where: string): string {
  if (!/^[\x21-\x7e]+$/.test(value))
    throw noCredentials(`the token of ${where} contains spaces, control or non-ASCII characters`);
  return value;
}
