/** The text of the page, as `npm run build` inserts it. */
declare module '*.html' {
  const text: string;
  export default text;
}
