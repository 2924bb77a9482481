// The style sheet of the status page: large figures for a wall screen.
import { baseStyle } from '../../html/style.js';

export const STATUS_STYLE = `${baseStyle()}
body{padding:0 clamp(.75rem,1.5vw,2rem);font-size:clamp(1rem,.8rem + .4vw,1.5rem);line-height:1.4}
header{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:.25rem 1rem;padding-top:.75rem}
h1{font-size:1.1em;margin:0;overflow-wrap:anywhere}
h1 span{font-weight:400;color:var(--quiet)}
h2{font-size:1em;font-weight:600;margin:0;color:var(--quiet)}
p{margin:0}
.badge{font-weight:600;color:var(--quiet)}
.badge[data-level=bad]{color:var(--bad)}
.state{margin:.6rem 0;padding:.35em .6em;border-radius:.4rem;border:1px solid var(--line);background:var(--card);font-size:clamp(1.5rem,3vw,3.5rem);line-height:1.2;font-weight:700}
.state[data-level]{color:var(--on-level);border-color:transparent}
.state[data-level=good]{background:var(--good-back);color:var(--on-good)}
.state[data-level=warn]{background:var(--warn)}
.state[data-level=bad]{background:var(--bad)}
.tiles{display:grid;gap:.75rem;margin:.75rem 0;grid-template-columns:minmax(0,1fr)}
.tiles[hidden]{display:none}
@media (min-width:34em){.figures{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media (min-width:64em){.figures{grid-template-columns:repeat(4,minmax(0,1fr))}.lists{grid-template-columns:repeat(3,minmax(0,1fr))}}
section{padding:.7rem .9rem;min-width:0;display:flex;flex-direction:column}
.figure{font-size:clamp(2.4rem,4.4vw,6rem);line-height:1.15;font-weight:700;font-variant-numeric:tabular-nums;letter-spacing:-.01em;overflow-wrap:anywhere}
.figure.part{font-size:clamp(1.7rem,2.7vw,3.8rem);line-height:1.3}
.figure small{font-size:.5em;font-weight:600;letter-spacing:0}
.figure[data-level=good]{color:var(--good)}
.figure[data-level=warn]{color:var(--warn)}
.figure[data-level=bad]{color:var(--bad)}
.more{color:var(--quiet);font-variant-numeric:tabular-nums;overflow-wrap:anywhere;white-space:pre-line}
.chart{margin-top:auto;font-size:.8em;color:var(--quiet)}
.chart svg{display:block;width:100%;height:clamp(4.5rem,11vh,10rem);border-bottom:1px solid var(--line);border-top:1px dashed var(--line);overflow:visible}
.top{display:block;min-height:1.4em;text-align:right}
.ends{display:flex;justify-content:space-between}
.area{fill:var(--area)}
.line{fill:none;stroke:var(--link);stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round;vector-effect:non-scaling-stroke}
.marks{fill:none;stroke:var(--bad);stroke-width:3;vector-effect:non-scaling-stroke}
table{margin-top:.25rem}
table:has(tbody:empty){display:none}
th{font-size:.8em;text-align:left;color:var(--quiet);font-weight:600}
th,td{padding:.15rem .75rem .15rem 0;vertical-align:top}
td{border-top:1px solid var(--line);overflow-wrap:anywhere}
td:first-child{width:1%;white-space:nowrap;font-variant-numeric:tabular-nums;text-align:right}
th:first-child{text-align:right}
footer{font-size:.85em;padding-bottom:1rem}
.old .tiles{filter:grayscale(1)}
`;
