// The palette, the style sheets, and the script for public pages.

const PALETTE = {
  back: ['#f4f6f8', '#0f1419'],
  card: ['#fff', '#181f27'],
  text: ['#1b1f24', '#e6e9ee'],
  quiet: ['#55606b', '#a3adb8'],
  line: ['#d5dbe1', '#323c47'],
  link: ['#0b57d0', '#8ab4f8'],
  accent: ['#0b57d0', '#8ab4f8'],
  'on-accent': ['#fff', '#0f1419'],
  area: ['#0b57d022', '#8ab4f82b'],
  notice: ['#fff3d1', '#352b0d'],
  'notice-line': ['#d9a400', '#d9a400'],
  alert: ['#fdeceb', '#3a1a18'],
  'alert-line': ['#c5362b', '#f28b82'],
  good: ['#176b2e', '#5fd07f'],
  'good-back': ['#176b2e', '#14532d'],
  'on-good': ['#fff', '#e6f6ea'],
  warn: ['#8a4b00', '#f0b429'],
  bad: ['#b3261e', '#ff8a80'],
  'on-level': ['#fff', '#0f1419'],
} as const;

/** The CSS variables of a mode. `page.accentColor` is unreadable for links on dark backgrounds. */
function coloursOf(mode: 0 | 1, accent: string | undefined): string {
  const own = accent === undefined ? [] : [`--accent:${accent}`, '--on-accent:#fff'];
  if (accent !== undefined && mode === 0) own.push(`--link:${accent}`);
  return [...Object.entries(PALETTE).map(([name, pair]) => `--${name}:${pair[mode]}`), ...own].join(';');
}

/** Returns the rules common to all style sheets; `accent` is `#rgb` or `#rrggbb`. */
export const baseStyle = (accent?: string): string => `
:root{color-scheme:light dark;${coloursOf(0, accent)}}
@media screen and (prefers-color-scheme:dark){:root{${coloursOf(1, accent)}}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
a{color:var(--link)}
a:focus-visible{outline:3px solid var(--link);outline-offset:2px}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem}
table{width:100%;border-collapse:collapse}
footer{color:var(--quiet)}
`;

export const pageStyle = (accent?: string): string => `${baseStyle(accent)}
body{font-size:1rem;line-height:1.5}
button:focus-visible,input:focus-visible,summary:focus-visible{outline:3px solid var(--link);outline-offset:2px}
header,main,footer{max-width:62rem;margin:0 auto;padding:0 1rem}
header{display:flex;align-items:center;gap:.75rem;padding-top:1rem}
header a{display:flex;align-items:center;gap:.6rem;color:inherit;font-weight:600;text-decoration:none}
header img{height:2.25rem;width:auto}
main{padding-bottom:1rem}
h1{font-size:clamp(1.35rem,5vw,2rem);line-height:1.25;margin:1.25rem 0 .75rem;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:0 0 .5rem}
.kind{display:block;font-size:.8rem;font-weight:600;letter-spacing:.06em;text-transform:uppercase;color:var(--quiet)}
section{padding:1rem;margin:1rem 0}
section p{margin:.25rem 0}
.quiet{color:var(--quiet);font-size:.9rem}
.note{border:1px solid var(--notice-line);border-left-width:.4rem;background:var(--notice);border-radius:.4rem;padding:.7rem .9rem;margin:1rem 0}
.bad{border-color:var(--alert-line);background:var(--alert)}
.steps{margin:0;padding:0;list-style:none;display:grid;gap:.6rem;overflow-wrap:anywhere}
.actions{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.75rem 0}
.button{display:inline-block;font:inherit;font-weight:500;padding:.45rem .9rem;border-radius:.4rem;border:1px solid var(--line);background:var(--card);color:var(--link);text-decoration:none;cursor:pointer}
.button.main{background:var(--accent);border-color:var(--link);color:var(--on-accent)}
.button:hover{border-color:var(--link)}
form{display:flex;flex-wrap:wrap;gap:.5rem}
form label{flex-basis:100%;font-weight:600}
input::placeholder{color:var(--quiet);opacity:1}
input{flex:1 1 16rem;min-width:0;font:inherit;padding:.5rem .7rem;border:1px solid var(--quiet);border-radius:.4rem;background:var(--card);color:var(--text)}
th,td{text-align:left;vertical-align:top;padding:.5rem .75rem .5rem 0;border-top:1px solid var(--line)}
thead th{border-top:0;font-size:.8rem;color:var(--quiet)}
td{white-space:nowrap}
td.wide{white-space:normal;overflow-wrap:anywhere;min-width:7.5rem;max-width:16rem}
td.data{width:100%;max-width:none}
bdi,code,pre{overflow-wrap:anywhere}
code,pre{font:.9em/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
pre{margin:0;white-space:pre-wrap}
summary{cursor:pointer}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:0}
dt{color:var(--quiet)}
dd{margin:0;overflow-wrap:anywhere}
nav ul{margin:.25rem 0;padding-left:1.25rem;overflow-wrap:anywhere}
nav>ul{padding:0;list-style:none}
nav{margin-bottom:1.5rem}
footer{font-size:.9rem;padding-bottom:1.5rem}
footer ul{display:flex;flex-wrap:wrap;gap:.5rem 1.25rem;list-style:none;margin:.75rem 0;padding:0}
footer li{overflow-wrap:anywhere}
@media screen and (max-width:50rem){
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table,tbody,tr,td{display:block;width:auto}
tr{border-top:1px solid var(--line);padding:.5rem 0}
tr:first-child{border-top:0}
td,td.wide{border:0;padding:.1rem 0;width:auto;max-width:none;white-space:normal;display:grid;grid-template-columns:5.5rem 1fr}
td::before{content:attr(data-label);color:var(--quiet);font-size:.85rem}
dl{grid-template-columns:1fr}
dd{margin-bottom:.4rem}
}
${PRINT_STYLE}`;

/** Hides controls on paper. The dark palette is for screens only, so that paper has the light one. */
const PRINT_STYLE = `@media print{
:root{color-scheme:light}
body{background:none;font-size:.85rem}
tr{break-inside:avoid}
td.wide{min-width:6.25rem}
.actions,form,.steps .button,nav{display:none}
}
`;

/**
 * Script that replaces the link of the handle by the copy buttons; text browsers would show hidden ones. Uses execCommand
 * over plain HTTP, where browsers do not offer `navigator.clipboard`; it copies only a selection, which the event replaces.
 */
export const PAGE_SCRIPT = `
const link = document.getElementById('link');
const handle = document.getElementById('handle');
function createButton(label, text) {
  const status = document.getElementById('copy-status');
  const button = document.createElement('button');
  button.className = 'button';
  button.textContent = label;
  const putText = (event) => {
    event.clipboardData.setData('text/plain', text);
    event.preventDefault();
  };
  const copySelection = () => {
    getSelection().selectAllChildren(handle);
    document.addEventListener('copy', putText, { once: true });
    if (!document.execCommand('copy')) throw new Error('not copied');
  };
  button.addEventListener('click', async () => {
    try {
      await (navigator.clipboard ? navigator.clipboard.writeText(text) : copySelection());
      status.textContent = 'Copied.';
    } catch {
      status.textContent = 'The browser did not allow copying.';
    }
  });
  return button;
}
link?.replaceWith(createButton('Copy handle', handle.textContent), createButton('Copy link', link.href));
`;

/** The `/favicon.ico` image: two links of a chain. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke="#0b57d0" stroke-width="4" stroke-linecap="round"><path d="M13 19l6-6M14.500 9.500l3-3a6 6 0 0 1 8 8l-3 3M17.500 22.500l-3 3a6 6 0 0 1-8-8l3-3"/></svg>`;
