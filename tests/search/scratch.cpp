#pragma GCC diagnostic ignored "-Wconversion"
// scratch
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <random>
#include "search/estimate.hpp"
#include "search/simulate_plan.hpp"
#include "machine/catalog.hpp"
#include "plan/space.hpp"
using namespace lockstep;
static double now(){ return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
int main(int argc,char**argv){
  config::DataPath data{std::filesystem::path("/tmp/x")};
  std::vector<experiment::Override> o;
  for(int i=3;i<argc;++i) o.push_back(experiment::parse_override(argv[i],"--set"));
  auto loaded=experiment::load_experiment(argv[1],o,data);
  auto&e=loaded.points[0];
  config::Diagnostics d; auto m=machine::load_machine(data,e.machine,d); d.throw_if_any();
  auto placement=m.place(e.ranks[0]);
  cost::CostModel costs(m,placement);
  search::Subject s{e,m,placement,costs};
  double t=now();
  auto lists=plan::with_defaults(e.search,e.model,placement.ranks);
  auto space=plan::make_space(lists,e.plan,e.batch,e.optimizer,e.model,placement);
  fmt::print("{} combinations {} candidates {:.2f} s\n",space.combinations,space.candidates.size(),now()-t);
  for(auto&r:space.refusals) fmt::print("  refused {}\n",r);
  search::Pieces pieces(s); search::Estimator est(s,pieces);
  int n=atoi(argv[2]);
  std::mt19937 rng(7);
  auto c=space.candidates; std::shuffle(c.begin(),c.end(),rng);
  c.resize(std::min<size_t>(c.size(),n));
  t=now(); for(auto&x:c) est.memory(x.plan); fmt::print("pieces {:.3f} s, {} graphs\n",now()-t,pieces.simulated());
  t=now(); std::vector<search::Estimate> es; for(auto&x:c) es.push_back(est.estimate(x.plan)); fmt::print("estimates {:.3f} s: {:.0f}/s\n",now()-t,c.size()/(now()-t));
  if(getenv("DBG")) for(auto&x:c){ fmt::print("{} dp {} m {}\n",plan::plan_text(x.request),x.plan.mesh.dp,x.plan.accumulation);
    auto&st=pieces.of_step(x.plan); auto&pa=pieces.of_passes(x.plan);
    auto show=[&](const char*nm,auto&sl,auto&pl){ fmt::print("  {}: ",nm); for(double b:{1.,2.,3.,4.,6.}) fmt::print(" [{}: fixed {:.2f} kept {:.2f} tr {:.2f} F {:.4f} B {:.4f} sync {:.3f} gather {:.3f}]\n      ",b,sl.fixed.at(b).value/1e9,pl.kept.at(b).value/1e9,pl.transient.at(b).value/1e9,pl.forward.at(b).value,pl.backward.at(b).value,sl.sync.at(b).value,sl.gather.at(b).value); fmt::print("\n");};
    show("first",st.first,pa.first); show("middle",st.middle,pa.middle); show("last",st.last,pa.last);}
  if(getenv("FULL")){
   std::vector<double> err, merr; double sim=0;
   for(size_t i=0;i<c.size();++i){
    t=now(); analysis::RunFindings f; try{ f=search::simulate_plan(s,c[i].plan);}catch(std::exception&x){fmt::print("{} {}\n",plan::plan_text(c[i].request),x.what());continue;} double dt=now()-t; sim+=dt;
    double a=es[i].time().value,b=f.step_time.median.value; double ma=es[i].memory.value,mb=f.memory.total.value;
    err.push_back(std::abs(a/b-1)); merr.push_back(std::abs(ma/mb-1));
    auto&p=es[i].parts;auto&q=f.breakdown;
    fmt::print("{:+6.2f}% {:8.3f} {:8.3f}  mem {:+6.2f}% {:7.1f} {:7.1f} {:.2f}s {} dp {} m {} | {:.3f}+{:.3f} {:.3f} {:.3f} {:.3f} {:.3f} | {:.3f} {:.3f} {:.3f} {:.3f} {:.3f} l{:.3f}\n",100*(a/b-1),a,b,100*(ma/mb-1),ma/1e9,mb/1e9,dt,plan::plan_text(c[i].request),c[i].plan.mesh.dp,c[i].plan.accumulation,
      p.compute.value,p.recomputation.value,p.communication.value,p.bubble.value,p.synchronisation.value,p.optimizer.value,q.compute.value,q.exposed_communication.value,q.wait.value,q.bubble.value,q.optimizer.value,q.launch.value+q.idle.value);
   }
   std::sort(err.begin(),err.end());std::sort(merr.begin(),merr.end());
   auto q=[](auto&v,double x){return v[std::min(v.size()-1,(size_t)(x*v.size()))];};
   fmt::print("time median {:.4f} p95 {:.4f} max {:.4f}; memory median {:.4f} p95 {:.4f} max {:.4f}; sim {:.2f} s\n",q(err,.5),q(err,.95),err.back(),q(merr,.5),q(merr,.95),merr.back(),sim);
  }
}
